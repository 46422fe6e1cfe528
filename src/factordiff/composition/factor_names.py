"""Factors by name: pixel, row, column, block:2x2, component, whole, and near:2, which overlap."""

from __future__ import annotations

import re

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition import factors
from factordiff.composition.factors import Partition
from factordiff.errors import InvalidInput

# The only table of names; what the help says, what a page may ask for and what worlds try are read off it.
NAMES = ("pixel", "row", "column", "block:HxW", "component", "whole", "near:R")
EXAMPLES = tuple(name.replace("HxW", "2x2").replace(":R", ":2") for name in NAMES)
_BLOCK = re.compile(r"block:([1-9][0-9]{0,8})x([1-9][0-9]{0,8})")
_NEAR = re.compile(r"near:([1-9][0-9]{0,3})")


def pattern(number: str) -> str:
    """A regular expression for every name, if `number` is one for the sizes in it.

    >>> pattern("[12]")
    'pixel|row|column|block:[12]x[12]|component|whole|near:[12]'
    """
    return "|".join(NAMES).replace("HxW", f"{number}x{number}").replace(":R", f":{number}")


def check_factors(name: str) -> None:
    """Refuse a name that means no partition."""
    if name not in NAMES and not _BLOCK.fullmatch(name) and not _NEAR.fullmatch(name):
        raise InvalidInput(f"factors: expected one of {', '.join(NAMES)} (such as block:2x2), got {name!r}")
    if name == "block:HxW":
        raise InvalidInput("factors: write the block's height and width in place of HxW, such as block:2x2")
    if name == "near:R":
        raise InvalidInput("factors: write how far a neighbour may be in place of R, such as near:2")


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
    if _NEAR.fullmatch(name):
        raise InvalidInput(
            f"factors: {name!r} overlap, and this method needs factors that do not; only 'evidence' takes them"
        )
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


def window(name: str, cells: int, layout: tuple[int, int] | None = None) -> Float[Tensor, "cell cell"] | None:
    """The kernel of `near:R`: 1 for cells at most R rows and R columns away; None for any other name.

    Without a layout of that many cells they stand in a line.

    >>> window("near:1", 4).tolist()[0]
    [1.0, 1.0, 0.0, 0.0]
    """
    found = _NEAR.fullmatch(name)
    if found is None:
        return None
    width = layout[1] if layout is not None and layout[0] * layout[1] == cells else cells
    place = torch.stack([torch.arange(cells) // width, torch.arange(cells) % width])
    apart = (place[:, :, None] - place[:, None, :]).abs().amax(0)
    return (apart <= int(found[1])).double()


def factors_named(
    name: str,
    cells: int,
    layout: tuple[int, int] | None = None,
    query: Int[Tensor, "item cell"] | None = None,
    overlapping: bool = False,
) -> Partition | Float[Tensor, "cell cell"] | None:
    """What a name means for so many cells: a partition, or the kernel of factors that overlap, where they may."""
    kernel = window(name, cells, layout) if overlapping else None
    return partition(name, cells, layout, query) if kernel is None else kernel
