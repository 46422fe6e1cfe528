"""Pairs of grids on canvases as the experts' condition: the one place that says which cells are outside a grid."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from factordiff.arc.grid import CELLS, SIDE
from factordiff.experts.condition import Condition, Inside


def inside(shapes: Shaped[Tensor, "*grids 2"]) -> Bool[Tensor, "*grids cell"]:
    """Which cells of the canvas belong to grids of these heights and widths."""
    cell = torch.arange(CELLS, device=shapes.device)
    return (cell // SIDE < shapes[..., :1]) & (cell % SIDE < shapes[..., 1:])


def condition_from(
    canvases: Int[Tensor, "item slot 2 cell"],
    shapes: Shaped[Tensor, "item slot 2 2"],
    present: Bool[Tensor, "item frame"],
) -> Condition:
    """The condition of items whose slot 0 holds the query (its output is not looked at), the others demonstrations.

    A demonstration that is not there is empty: all its cells are 0, and outside.
    """
    there = present[:, :, None, None]
    shown, sizes = canvases[:, 1:] * there, inside(shapes[:, 1:]) & there
    return Condition(
        canvases[:, 0, 0],
        shown[:, :, 0],
        shown[:, :, 1],
        present,
        Inside(inside(shapes[:, 0, 0]), sizes[:, :, 0], sizes[:, :, 1]),
    )
