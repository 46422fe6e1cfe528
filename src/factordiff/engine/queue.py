"""Continuous batching: finished items leave, waiting ones take their slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.engine.expert_batch import ExpertBatch
from factordiff.sampling.rows import joined_rows, some_rows
from factordiff.state import SamplerState

REFILL = 16  # waiting items are admitted when this share of the slots is free: few, large encodings


def in_order(states: Sequence[SamplerState]) -> SamplerState:
    """Finished rows of one or several queues, in the order of the request."""
    state = joined_rows(states)
    return some_rows(state, state.item.argsort(stable=True))


class Queue:
    """These `items` of a request, at most `slots` of them in flight; unless `leaving`, they wait for each other.

    If a step reveals at most so many cells of a row (`most`), nobody looks while no row can be full: on a GPU a look
    waits for the step to end, and the next one is not launched before.
    """

    def __init__(
        self,
        x_t: Int[Tensor, "request cell"],
        ids: Int[Tensor, " request"] | None,
        items: Int[Tensor, " item"],
        batch: ExpertBatch,
        slots: int,
        leaving: bool,
        *,
        mask: int,
        seed: int,
        repairs: int,
        most: int | None = None,
    ) -> None:
        self.x_t, self.ids, self.items, self.batch = x_t, ids, items, batch
        self.slots, self.leaving, self.mask, self.seed, self.repairs = slots, leaving, mask, seed, repairs
        self.most, self._unseen = most, 0  # so many steps are not looked at
        self.waiting = 0  # the first item that still waits
        self._finished: list[SamplerState] = []

    def begin(self) -> SamplerState:
        """The first items in flight."""
        return self.exchange(self._admit(self.slots))

    def exchange(self, state: SamplerState) -> SamplerState:
        """Finished items leave, and waiting ones take their slots; an empty state is the end."""
        self._unseen -= 1
        if self._unseen > 0:
            return state
        state = self._exchanged(state)
        if self.most is not None and len(state):
            self._unseen = -(-int(state.masked.sum(-1).amin()) // self.most)
        return state

    def _exchanged(self, state: SamplerState) -> SamplerState:
        while True:
            unfinished = self._unfinished(state)
            staying = unfinished.nonzero().squeeze(-1)
            if len(staying) and not self.leaving:
                return state
            if len(staying) < len(unfinished):
                self._finished.append(some_rows(state, self._rows((~unfinished).nonzero().squeeze(-1))))
                self.batch.retire(staying)
                state = some_rows(state, self._rows(staying))
            room = self.slots - len(staying)
            arriving = min(room, len(self.items) - self.waiting)
            if arriving == 0 or (len(state) and room * REFILL < self.slots):
                return state
            state = joined_rows([state, self._admit(arriving)])

    def filled(self, state: SamplerState) -> int:
        """How many cells were masked and are no more: of the finished, and of those in flight."""
        begun = self.items[: self.waiting]
        masked = self.batch.particles * int((self.x_t[begun] == self.mask).sum())
        return masked - int(state.masked.sum())

    def finished(self) -> SamplerState:
        """Everybody, as they finished."""
        return joined_rows(self._finished) if self._finished else self._admit(0)

    def _admit(self, count: int) -> SamplerState:
        items = self.items[self.waiting : self.waiting + count]
        self.waiting += count
        self.batch.admit(items)
        state = SamplerState.begin(
            self.x_t[items],
            self.mask,
            len(self.batch.experts),
            particles=self.batch.particles,
            seed=self.seed,
            ids=items if self.ids is None else self.ids[items],
            repairs=self.repairs,
        )
        return replace(state, item=items[state.item])

    def _unfinished(self, state: SamplerState) -> Bool[Tensor, " item"]:
        return state.masked.any(-1).view(-1, self.batch.particles).any(-1)

    def _rows(self, items: Int[Tensor, " some"]) -> Int[Tensor, " batch"]:
        particle = torch.arange(self.batch.particles, device=items.device)
        return (items[:, None] * self.batch.particles + particle).flatten()
