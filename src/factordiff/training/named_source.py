"""The source that people name: a class of their own, or a file of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.own_modules import named_class
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
    made = _made(name, named_class("source", name, EXPECTED), torch.device(device))
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
