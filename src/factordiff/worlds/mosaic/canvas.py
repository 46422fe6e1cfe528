"""Four canvases of 10x10 as one of 20x20, and back: cells, conditions, and an expert asked about each quarter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from factordiff.arc.grid import CELLS, SIDE
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert, rebuilt, tensors_of
from factordiff.types import CellLogProbs, Tokens

QUARTERS, WIDTH = 4, 2 * SIDE
NEVER = -1  # no token: what a cell was before anybody asked


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
    """An expert of 10x10 canvases asked about each quarter of a large one: four rows of its own for every row.

    A quarter that is as it was when it was last asked about is not asked about again: a step that fills one cell
    changes one quarter of four. What was said is kept for the items that were encoded last.
    """

    def __init__(self, expert: Expert) -> None:
        self.expert, self.vocabulary = expert, expert.vocabulary
        self._last: _Said | None = None

    def encode(self, condition: Condition) -> tuple[Any, Int[Tensor, "item 2"]]:
        """The encodings of the four quarters, side by side behind the item; and which item of which call it is."""
        encoded = self.expert.encode(condition_apart(condition))
        four = [part.view(-1, QUARTERS, *part.shape[1:]) for part in tensors_of(encoded)]
        items, device = len(condition.query), condition.query.device
        call = 0 if self._last is None else self._last.call + 1
        self._last = _Said(call, torch.full((items, QUARTERS, CELLS), NEVER, device=device))
        names = torch.stack(
            [torch.full((items,), call, device=device), torch.arange(items, device=device)], 1
        )
        return rebuilt(encoded, iter(four)), names

    def log_probs(self, x_t: Tokens, encoded: tuple[Any, Int[Tensor, "row 2"]]) -> CellLogProbs:
        """What it says about the quarters, or said, put together."""
        about, (call, item) = encoded[0], encoded[1].unbind(1)
        quarters = apart(x_t)
        last = self._last
        if last is not None and bool((call == last.call).all()):
            said = last.about(item, quarters, lambda row, quarter: self._asked(quarters, about, row, quarter))
        else:  # items of an earlier call
            row, quarter = torch.ones_like(quarters[..., 0], dtype=torch.bool).nonzero().unbind(1)
            said = self._asked(quarters, about, row, quarter).unflatten(0, (-1, QUARTERS))
        return together(said.movedim(-1, 2)).movedim(1, -1)

    def _asked(self, quarters: Tensor, about: Any, row: Tensor, quarter: Tensor) -> CellLogProbs:
        """What the expert says about some quarters of some rows."""
        told = rebuilt(about, iter([part[row, quarter] for part in tensors_of(about)]))
        return self.expert.log_probs(quarters[row, quarter], told)

    def __repr__(self) -> str:
        return f"Quartered({self.expert!r})"


class _Said:
    """What an expert said last about the quarters of each item of a call, and as what it had seen them."""

    def __init__(self, call: int, seen: Int[Tensor, "item 4 small"]) -> None:
        self.call, self.seen = call, seen
        self.said: Float[Tensor, "item 4 small value"] | None = None

    def about(
        self,
        item: Int[Tensor, " row"],
        quarters: Int[Tensor, "row 4 small"],
        ask: Callable[[Tensor, Tensor], CellLogProbs],
    ) -> Float[Tensor, "row 4 small value"]:
        """What is said about these rows; those of an item that differ from what it was are asked about."""
        row, quarter = (quarters != self.seen[item]).any(-1).nonzero().unbind(1)
        if not len(row) and self.said is not None:
            return self.said[item]
        new = ask(row, quarter)
        if self.said is None:
            self.said = new.new_zeros(*self.seen.shape, new.shape[-1])
        found = self.said[item]
        found[row, quarter] = new
        # Rows of one item (particles) may differ: one of them is remembered, with what was said of it.
        rows = torch.arange(len(item), device=item.device)
        which = rows.new_zeros(len(self.seen)).index_put((item,), rows)[item]
        self.seen[item], self.said[item] = quarters[which], found[which]
        return found
