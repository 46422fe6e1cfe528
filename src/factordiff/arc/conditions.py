"""Pairs of grids on canvases as the experts' condition: the one place that says which cells are outside a grid."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Shaped, UInt8
from torch import Tensor

from factordiff.arc.grid import CELLS, SIDE
from factordiff.experts.condition import Condition, Inside


def inside(shapes: Shaped[Tensor, "*grids 2"]) -> Bool[Tensor, "*grids cell"]:
    """Which cells of the canvas belong to grids of these heights and widths."""
    cell = torch.arange(CELLS, device=shapes.device)
    return (cell // SIDE < shapes[..., :1]) & (cell % SIDE < shapes[..., 1:])


def condition_from(
    canvases: UInt8[Tensor, "item slot 2 cell"],
    masks: Bool[Tensor, "item slot 2 cell"],
    present: Bool[Tensor, "item frame"] | None = None,
) -> Condition:
    """The condition of items whose slot 0 holds the query (its output is not looked at), the others demonstrations.

    `masks` are the cells inside the grids. A demonstration that is not `present` is empty: all its cells are 0, and
    outside; None says that all are there, and spares a pass over the batch.
    """
    shown, sizes = canvases[:, 1:], masks[:, 1:]
    if present is None:
        present = torch.ones(shown.shape[:2], dtype=torch.bool, device=shown.device)
    else:
        # On bytes, before the cells become int64; a CPU has no vector instructions for `&` of booleans.
        there = present[:, :, None, None]
        shown, sizes = shown * there, (sizes.to(torch.uint8) * there).to(torch.bool)
    shown = shown.to(torch.int64)
    return Condition(
        canvases[:, 0, 0].to(torch.int64),
        shown[:, :, 0],
        shown[:, :, 1],
        present,
        Inside(masks[:, 0, 0], sizes[:, :, 0], sizes[:, :, 1]),
    )
