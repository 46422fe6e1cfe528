"""Four canvases of 10x10 as one of 20x20, and back: cells, conditions, and an expert asked about each quarter."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from factordiff.arc.grid import CELLS, SIDE
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert, rebuilt, tensors_of
from factordiff.types import CellLogProbs, Tokens

QUARTERS, WIDTH = 4, 2 * SIDE


def places() -> Int[Tensor, "quarter cell"]:
    """Where each cell of each quarter lies on the large canvas: top left, top right, bottom left, bottom right."""
    row, column = torch.arange(CELLS) // SIDE, torch.arange(CELLS) % SIDE
    quarter = torch.arange(QUARTERS)[:, None]
    return (SIDE * (quarter // 2) + row) * WIDTH + SIDE * (quarter % 2) + column


def apart(whole: Shaped[Tensor, "item *more cell"]) -> Shaped[Tensor, "item 4 *more small"]:
    """The quarters of large canvases, side by side behind the item."""
    return whole[..., places().to(whole.device)].movedim(-2, 1)


def together(quarters: Shaped[Tensor, "item 4 *more small"]) -> Shaped[Tensor, "item *more cell"]:
    """Large canvases from their quarters: the inverse of `apart`."""
    where = places().flatten().argsort().to(quarters.device)
    return quarters.movedim(1, -2).flatten(-2)[..., where]


def condition_apart(condition: Condition) -> Condition:
    """The condition of every quarter, four items for each large one."""
    present = condition.present.repeat_interleave(QUARTERS, 0)
    return condition.with_grids(lambda part: apart(part).flatten(0, 1), present)


def condition_together(quarters: Condition) -> Condition:
    """One condition of large canvases from four small ones each, which show equally many demonstrations."""
    present = quarters.present.view(-1, QUARTERS, quarters.present.shape[1])
    if bool((present != present[:, :1]).any()):
        raise InvalidInput("condition: expected as many demonstrations in each quarter of a canvas")
    return quarters.with_grids(lambda part: together(part.view(-1, QUARTERS, *part.shape[1:])), present[:, 0])


class Quartered:
    """An expert of 10x10 canvases asked about each quarter of a large one: four rows of its own for every row."""

    def __init__(self, expert: Expert) -> None:
        self.expert, self.vocabulary = expert, expert.vocabulary

    def encode(self, condition: Condition) -> Any:
        """The encodings of the four quarters, side by side behind the item."""
        encoded = self.expert.encode(condition_apart(condition))
        four = [part.view(-1, QUARTERS, *part.shape[1:]) for part in tensors_of(encoded)]
        return rebuilt(encoded, iter(four))

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """What it says about the quarters, put together."""
        told = rebuilt(encoded, iter([part.flatten(0, 1) for part in tensors_of(encoded)]))
        said = self.expert.log_probs(apart(x_t).flatten(0, 1), told)
        values = said.movedim(-1, 1).reshape(len(x_t), QUARTERS, said.shape[-1], CELLS)
        return together(values).movedim(1, -1)

    def __repr__(self) -> str:
        return f"Quartered({self.expert!r})"
