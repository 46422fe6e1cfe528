"""The source that people name: a class of their own, or a file of arrays."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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
    made = _made(name, _imported(module, attribute), torch.device(device))
    if not isinstance(made, Source):
        missing = [part for part in MEMBERS if not hasattr(made, part)]
        raise InvalidInput(
            f"source: {name} has no {', '.join(missing)}; a source has {', '.join(MEMBERS)} (docs/own-data.md)"
        )
    items = torch.arange(2, device=device)
    _check(f"{name}.draw", made, made.draw(0, torch.zeros_like(items[0]), items))
    _check(f"{name}.validation", made, made.validation(2))
    return made


def _made(name: str, kind: Callable[..., Any], device: torch.device) -> Any:
    try:
        inspect.signature(kind).bind(device)
    except TypeError as error:
        raise InvalidInput(
            f"source: {name} is called with the device that batches are on ({error})"
        ) from error
    try:
        return kind(device)
    except OSError as error:
        raise InvalidInput(f"source: {name} could not read its data ({error})") from error


def _check(what: str, source: Source, drawn: Any) -> None:
    """Refuse what is no pair of a condition and two items' clean cells: a network may learn from it all the same."""
    if not isinstance(drawn, tuple) or len(drawn) != 2 or not isinstance(drawn[1], Tensor):
        raise InvalidInput(f"source: {what} gave a {type(drawn).__name__}, expected (condition, clean cells)")
    cells, size = drawn[1], source.vocabulary.size
    if cells.dtype != torch.int64 or cells.dim() != 2 or cells.shape[1] != source.cells:
        raise InvalidInput(
            f"source: {what} gave {cells.dtype} of shape {tuple(cells.shape)}, expected int64 of (item, {source.cells})"
        )
    if cells.numel() and not 0 <= int(cells.min()) <= int(cells.max()) < size:
        raise InvalidInput(
            f"source: {what} gave values {int(cells.min())} .. {int(cells.max())}, expected 0 .. {size - 1}"
        )


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
