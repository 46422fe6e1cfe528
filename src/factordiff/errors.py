"""Everything this library raises on purpose."""

from __future__ import annotations


class FactorDiffError(Exception):
    """Base of all errors of this library: catch this one to catch them all."""


class InvalidInput(FactorDiffError, ValueError):
    """An argument is not what was expected; the sentence names it, what came and what was expected."""


class DataError(FactorDiffError, ValueError):
    """A file or data set is damaged, malformed or not the one that was asked for."""


class CheckpointError(FactorDiffError):
    """A checkpoint or weight folder cannot be read, written or used here."""


class FileError(FactorDiffError):
    """A file cannot be written: no room, no permission, no regular file, or another run at work on it."""


class MissingDependency(FactorDiffError, ImportError):
    """An optional package is needed; the sentence says which extra to install."""


class Unavailable(FactorDiffError):
    """Something that was asked for (a device, an expert, a preset) does not exist here."""
