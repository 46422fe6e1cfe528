"""The source that people name: a class of their own, or a file of arrays."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

from factordiff.errors import InvalidInput
from factordiff.training.arrays import ArraySource
from factordiff.training.source import Source

MEMBERS = ("digest", "vocabulary", "cells", "draw", "validation")
EXPECTED = (
    "expected module:Class (such as mine:Rows, for the class Rows in mine.py) or a file that ends in .npz"
)


def named_source(name: str, device: torch.device | str) -> Source:
    """`module:Class`, called with the device that batches are drawn on, or the arrays of an .npz file."""
    if name.endswith(".npz"):
        return ArraySource(Path(name), device)
    module, separator, attribute = name.partition(":")
    if not (separator and module and attribute):
        raise InvalidInput(f"source: {EXPECTED}, got {name!r}")
    made = _imported(module, attribute)(torch.device(device))
    if not isinstance(made, Source):
        missing = [part for part in MEMBERS if not hasattr(made, part)]
        raise InvalidInput(
            f"source: {name} has no {', '.join(missing)}; a source has {', '.join(MEMBERS)} (docs/own-data.md)"
        )
    return made


def _imported(module: str, attribute: str) -> type:
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as `python -m` would have it: people's own files are where they work
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"source: there is no module {error.name!r}, neither installed nor in {here}; {EXPECTED}"
        ) from error
    finally:
        sys.path.remove(here)
    if not callable(getattr(found, attribute, None)):
        raise InvalidInput(f"source: {module} has no class {attribute!r}; {EXPECTED}")
    return getattr(found, attribute)
