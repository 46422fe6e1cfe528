"""Factors by name: pixel, row, column, block:2x2, component, whole."""

from __future__ import annotations

import re

from jaxtyping import Int
from torch import Tensor

from factordiff.composition import factors
from factordiff.composition.factors import Partition
from factordiff.errors import InvalidInput

NAMES = ("pixel", "row", "column", "block:HxW", "component", "whole")
_BLOCK = re.compile(r"block:([1-9][0-9]*)x([1-9][0-9]*)")


def check_factors(name: str) -> None:
    """Refuse a name that means no partition."""
    if name not in NAMES and not _BLOCK.fullmatch(name):
        raise InvalidInput(f"factors: expected one of {', '.join(NAMES)} (such as block:2x2), got {name!r}")
    if name == "block:HxW":
        raise InvalidInput("factors: write the block's height and width in place of HxW, such as block:2x2")


def partition(
    name: str,
    cells: int,
    layout: tuple[int, int] | None = None,
    query: Int[Tensor, "item cell"] | None = None,
) -> Partition | None:
    """The partition of that name; None for `pixel`, which needs no labels.

    Rows, columns and blocks need a `layout` (height, width); components are those of each item's query.
    """
    check_factors(name)
    if name == "pixel":
        return None
    if name == "whole":
        return factors.whole(cells)
    if layout is None or layout[0] * layout[1] != cells:
        raise InvalidInput(
            f"layout: factors {name!r} need the height and width of the {cells} cells, got {layout}"
        )
    if name == "row":
        return factors.rows(*layout)
    if name == "column":
        return factors.columns(*layout)
    if name == "component":
        if query is None:
            raise InvalidInput("factors: 'component' are those of the query, but the condition has none")
        return factors.components(query.view(-1, *layout))
    block = _BLOCK.fullmatch(name)
    assert block is not None
    return factors.blocks(*layout, int(block[1]), int(block[2]))
