"""Four canvases of 10x10 as one of 20x20, and back: cells, conditions, and an expert asked about each quarter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from factordiff.arc.grid import CELLS, SIDE
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition, Inside
from factordiff.experts.expert import Expert, rebuilt, tensors_of
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

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
    return _each(
        condition, lambda part: apart(part).flatten(0, 1), condition.present.repeat_interleave(QUARTERS, 0)
    )


def condition_together(quarters: Condition) -> Condition:
    """One condition of large canvases from four small ones each, which show equally many demonstrations."""
    present = quarters.present.view(-1, QUARTERS, quarters.present.shape[1])
    if bool((present != present[:, :1]).any()):
        raise InvalidInput("condition: expected as many demonstrations in each quarter of a canvas")
    return _each(quarters, lambda part: together(part.view(-1, QUARTERS, *part.shape[1:])), present[:, 0])


def _each(condition: Condition, change: Callable[[Tensor], Tensor], present: Tensor) -> Condition:
    return Condition(
        change(condition.query),
        change(condition.context_inputs),
        change(condition.context_outputs),
        present,
        None if condition.inside is None else Inside(*map(change, condition.inside)),
    )


class Quartered:
    """An expert of 10x10 canvases asked about each quarter of a large one: four rows of its own for every row."""

    def __init__(self, expert: Expert) -> None:
        self.expert = expert

    @property
    def vocabulary(self) -> Vocabulary:
        """The expert's."""
        return self.expert.vocabulary

    def encode(self, condition: Condition) -> Any:
        """The encodings of the four quarters, side by side behind the item."""
        encoded = self.expert.encode(condition_apart(condition))
        return _each_tensor(encoded, lambda part: part.view(-1, QUARTERS, *part.shape[1:]))

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """What it says about the quarters, put together."""
        told = _each_tensor(encoded, lambda part: part.flatten(0, 1))
        said = self.expert.log_probs(apart(x_t).flatten(0, 1), told)
        values = said.movedim(-1, 1).reshape(len(x_t), QUARTERS, said.shape[-1], CELLS)
        return together(values).movedim(1, -1)

    def __repr__(self) -> str:
        return f"Quartered({self.expert!r})"


def _each_tensor(nested: Any, change: Callable[[Tensor], Tensor]) -> Any:
    changed: Sequence[Tensor] = [change(part) for part in tensors_of(nested)]
    return rebuilt(nested, iter(changed))
