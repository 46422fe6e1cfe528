"""Where results may be written, found out before the work is done and not after."""

from __future__ import annotations

import os
from pathlib import Path

from factordiff.errors import InvalidInput


def check_file(option: str, file: Path) -> None:
    """Refuse a file that could not be written after all the work: a folder, or one in a place that is closed."""
    place = _nearest(file.absolute().parent)
    if file.is_dir() or not _open(place):
        what = "is a folder" if file.is_dir() else f"cannot be written into {place}"
        raise InvalidInput(f"{option}: {file} {what}; choose another file name")


def check_folder(option: str, folder: Path) -> None:
    """Refuse a folder that is a file, or that could not be made or written into."""
    place = _nearest(folder.absolute())
    if not _open(place):
        what = "is a file" if folder.is_file() else f"cannot be made or written into at {place}"
        raise InvalidInput(f"{option}: {folder} {what}; choose another folder")


def _nearest(place: Path) -> Path:
    """The place itself, or the nearest above it that exists."""
    return next(one for one in (place, *place.parents) if one.exists())


def _open(place: Path) -> bool:
    return place.is_dir() and os.access(place, os.W_OK)
