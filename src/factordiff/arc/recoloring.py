"""Renaming colors: which colors of a task are used alike, and a random renaming among them for each training item.

Many generators draw their colors at random, so that a training pair with two such colors exchanged could as well have
been drawn itself; others say "red" and mean it. Exchanging only what the training pairs use alike gives new pairs of
the same rule, where exchanging everything would give pairs of another rule.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from factordiff.arc.grid import COLORS
from factordiff.streams import Purpose, uniform

# Standard errors from what is usual among a task's colors. About 10,000 pairs of colors are looked at, so chance alone
# must not reach it.
UNLIKELY = 5.0


def exchangeable_colors(
    inputs: UInt8[np.ndarray, "task instance cell"], outputs: UInt8[np.ndarray, "task instance cell"]
) -> Bool[np.ndarray, "task value"]:
    """Which colors each task uses like most of its others; never the background.

    Compared are how many cells of the inputs and of the outputs a color has, and how often an input with one color
    comes with an output of another. A color that differs from the median color anywhere stays what it is.
    """
    found = np.zeros((len(inputs), COLORS.size), dtype=bool)
    for task, grids in enumerate(zip(inputs, outputs, strict=True)):
        one, other = map(_counts, grids)
        alike = np.flatnonzero(~(_unusual(one) | _unusual(other)))
        together = ((one > 0)[:, :, None] & (other > 0)[:, None, :]).astype(np.float64)
        while len(alike) > 1:
            strange = _strange_company(together, alike)
            if not strange.any():
                found[task, 1 + alike] = True
                break
            alike = np.delete(alike, strange.argmax())
    return found


def draw_renaming(
    seed: int | Tensor,
    step: int | Tensor,
    items: Int[Tensor, " item"],
    alike: Bool[Tensor, "item value"],
    share: float,
) -> Int[Tensor, "item value"]:
    """What each value of each item becomes: with probability `share` its exchangeable colors in a random order."""
    values = torch.arange(COLORS.size, device=items.device)
    drawn = uniform(seed, Purpose.RENAMING, step, items[:, None], values)
    before = (drawn[:, None, :] < drawn[:, :, None]) & alike[:, None, :]
    rank = before.sum(-1)  # among the item's exchangeable colors, in the order drawn
    place = alike.to(torch.int64).cumsum(-1) - 1  # and in their own order
    takes = (rank[:, :, None] == place[:, None, :]) & alike[:, None, :]
    renamed = torch.where(alike, (takes * values).sum(-1), values)
    chosen = uniform(seed, Purpose.RENAMING, step, items, COLORS.size) < share
    return torch.where(chosen[:, None], renamed, values)


def _counts(grids: UInt8[np.ndarray, "instance cell"]) -> Float[np.ndarray, "instance color"]:
    return np.stack([(grids == color).sum(1) for color in range(1, COLORS.size)], 1).astype(np.float64)


def _unusual(found: Float[np.ndarray, "instance thing"]) -> Bool[np.ndarray, " thing"]:
    """Whose mean is too far from the median mean to be chance."""
    mean, error = found.mean(0), found.std(0) / len(found) ** 0.5
    typical = np.median(error)
    return np.abs(mean - np.median(mean)) > UNLIKELY * np.maximum(np.hypot(error, typical), 1e-9)


def _strange_company(
    together: Float[np.ndarray, "instance one other"], alike: Int[np.ndarray, " color"]
) -> Int[np.ndarray, " color"]:
    """With how many colors each of these comes more or less often than is usual among them.

    Apart are a color with itself, with another of these, and with each of those that are not.
    """
    among = together[:, alike][:, :, alike]
    apart = ~np.eye(len(alike), dtype=bool)
    strange = np.zeros(apart.shape, dtype=np.int64)
    strange[apart] = _unusual(among[:, apart])
    strange[~apart] = _unusual(among[:, ~apart])
    company = strange.sum(0) + strange.sum(1)
    for color in np.setdiff1d(np.arange(together.shape[1]), alike):
        company += _unusual(together[:, alike, color])
        company += _unusual(together[:, color, alike])
    return company
