"""What each expert said about items of which nothing was revealed yet: one pass for all methods and particles."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.types import Spoken, Tokens


class FirstPass:
    """A memory of first passes, by expert and item id. Give one to every `sample` on the same queries.

    It cannot see conditions: another query under an id that is known would get the old answer. A start that differs
    is noticed and refused.
    """

    def __init__(self) -> None:
        self._shelves: list[tuple[Expert, _Shelf]] = []

    def __len__(self) -> int:
        return sum(len(shelf.slots) for _, shelf in self._shelves)

    def __repr__(self) -> str:
        return f"FirstPass({len(self)} passes of {len(self._shelves)} experts remembered)"

    def known(self, expert: Expert, ids: list[int]) -> Bool[Tensor, " batch"]:
        """Which of the items the expert was already asked about."""
        slots = self._shelf(expert).slots
        return torch.tensor([one in slots for one in ids], dtype=torch.bool)

    def recall(self, expert: Expert, ids: list[int], x_t: Tokens) -> Spoken:
        """What it said about these items, all of them known."""
        return self._shelf(expert).get(ids, x_t)

    def remember(self, expert: Expert, ids: list[int], x_t: Tokens, said: Spoken) -> None:
        """Keep what it said about these items."""
        self._shelf(expert).put(ids, x_t, said)

    def forget(self, ids: list[int]) -> None:
        """Make room."""
        for _, shelf in self._shelves:
            shelf.drop(ids)

    def _shelf(self, expert: Expert) -> _Shelf:
        for owner, shelf in self._shelves:
            if owner is expert:
                return shelf
        self._shelves.append((expert, _Shelf()))
        return self._shelves[-1][1]


class _Shelf:
    """One expert's answers: a growing table, and where each item lies in it."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        self.free: list[int] = []
        self.starts: Tensor | None = None
        self.said: Tensor | None = None

    def get(self, ids: list[int], x_t: Tokens) -> Spoken:
        assert self.starts is not None
        assert self.said is not None
        where = self._index([self.slots[one] for one in ids], x_t)
        if self.starts.shape[1:] != x_t.shape[1:] or not torch.equal(self.starts[where], x_t):
            raise InvalidInput(
                "first_pass: it remembers another start of some of these items; use a new FirstPass for other queries"
            )
        return self.said[where]

    def put(self, ids: list[int], x_t: Tokens, said: Spoken) -> None:
        first = {one: row for row, one in reversed(list(enumerate(ids))) if one not in self.slots}
        self._grow(len(first), x_t, said)
        assert self.starts is not None
        assert self.said is not None
        self.slots |= {one: self.free.pop() for one in first}
        where = self._index([self.slots[one] for one in first], x_t)
        rows = self._index(list(first.values()), x_t)
        self.starts[where], self.said[where] = x_t[rows], said[rows]

    def drop(self, ids: list[int]) -> None:
        self.free += [self.slots.pop(one) for one in dict.fromkeys(ids) if one in self.slots]

    def _grow(self, more: int, x_t: Tokens, said: Spoken) -> None:
        old = 0 if self.starts is None else len(self.starts)
        if more <= len(self.free):
            return
        new = max(2 * old, old + more)
        starts, kept = x_t.new_zeros(new, *x_t.shape[1:]), said.new_zeros(new, *said.shape[1:])
        if self.starts is not None and self.said is not None:
            starts[:old], kept[:old] = self.starts, self.said
        self.starts, self.said = starts, kept
        self.free += range(old, new)

    @staticmethod
    def _index(numbers: list[int], like: Tensor) -> Int[Tensor, " some"]:
        return torch.tensor(numbers, dtype=torch.int64, device=like.device)
