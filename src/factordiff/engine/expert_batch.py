"""The experts and the items in flight: told about each item once, asked about as few rows as will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.engine.batch_sizes import BatchSizes
from factordiff.errors import InvalidInput
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.cell_outputs import CellOutputs
from factordiff.experts.expert import Expert, mapped, take
from factordiff.experts.forward import SumErrors, among, check_encoded, check_shape, side_by_side, sum_error
from factordiff.state import SamplerState
from factordiff.streams import hash_words
from factordiff.types import LARGE, CellLogProbs, Cells, ExpertLogProbs, Tokens


class ExpertBatch:
    """What `experts.forward.Forward` says, for items that come and go.

    `share` asks once about equal states of an item, and once about the start that its particles have in common, at
    whatever step they leave it; not about large vocabularies, whose distributions nobody could keep.
    """

    def __init__(
        self,
        experts: Sequence[Expert],
        condition: Any,
        batch: BatchSizes | None = None,
        share: bool = True,
        particles: int = 1,
        chunk: int | None = None,
        top_k: int | None = None,
    ) -> None:
        self.experts, self.condition, self.batch = experts, condition, batch
        self.large, self.chunk, self.top_k = experts[0].vocabulary.size > LARGE, chunk, top_k
        self.share, self.particles = share and particles > 1 and not self.large, particles
        self.errors, self.padded_passes = SumErrors(), 0
        self._encoded: list[Any] = []
        self._first: ExpertLogProbs | None = None  # what was said about each item's start
        self._known: Bool[Tensor, " item"] | None = None  # of which it was asked

    # Items come and go.

    def admit(self, items: Int[Tensor, " item"]) -> None:
        """Tell the experts about these items of the request, behind those in flight."""
        count = len(items)
        if self.batch is None:  # everybody, once
            new = [expert.encode(self.condition) for expert in self.experts]
        else:
            part = part_of(self.condition, items[self._filled(count, items.device)])
            new = [expert.encode(part) for expert in self.experts]
            count = self.batch.filled(count)
        check_encoded(tuple(new), count)
        if count > len(items):
            new = [take(one, torch.arange(len(items), device=items.device)) for one in new]
        old = self._encoded
        self._encoded = [joined(*pair) for pair in zip(old, new, strict=True)] if old else new
        unknown = torch.zeros(len(items), dtype=torch.bool, device=items.device)
        self._known = unknown if self._known is None else torch.cat([self._known, unknown])
        if self._first is not None:
            empty = self._first.new_zeros(len(self._first), len(items), *self._first.shape[2:])
            self._first = torch.cat([self._first, empty], 1)

    def retire(self, staying: Int[Tensor, " some"]) -> None:
        """Forget the items in flight that are not among those staying."""
        self._encoded = [take(one, staying) for one in self._encoded]
        self._known = None if self._known is None else self._known[staying]
        self._first = None if self._first is None else self._first[:, staying]

    # What they say.

    def __call__(
        self, state: SamplerState, cells: Cells
    ) -> tuple[ExpertLogProbs | CellOutputs, Int[Tensor, " batch"]]:
        """What every expert says about these cells, and how many passes were run for each row."""
        rows = cells.any(-1).nonzero().squeeze(-1)
        x_t, item = state.x_t[rows], rows // self.particles  # the item's position in flight
        if self.large:
            wanted = AskedCells.of(cells)
            outputs = self._at_cells(x_t, item, wanted, wanted.among(rows, len(rows)))
            return outputs, len(self.experts) * cells.any(-1).to(torch.int64)
        fresh = (state.masked == state.start).all(-1)[rows]
        if not self.share:
            log_probs, run = self._pass(x_t, item), torch.ones_like(rows)
        else:
            distinct, twin = self._distinct(x_t, item)
            said, asked = self._from_memory(x_t[distinct], item[distinct], fresh[distinct])
            log_probs = said[:, twin]
            run = torch.zeros_like(rows).index_copy(0, distinct, asked.to(torch.int64))
        passes = torch.zeros_like(state.item).index_copy(0, rows, len(self.experts) * run)
        return log_probs if len(rows) == len(state) else among(log_probs, rows, len(state)), passes

    def ask_all(self, x_t: Tokens) -> list[CellLogProbs]:
        """What each expert says about all items in flight, a row each: by a pass, and nothing else."""
        return [self._one(index, x_t) for index in range(len(self.experts))]

    def ask_at(self, x_t: Tokens, asked: AskedCells) -> list[Float[Tensor, "asked value"]]:
        """The same at some cells alone, whose number is known: an expert that can be asked so waits for nothing."""
        return [said.asked for said in self._at_cells(x_t, None, asked, asked).each]

    @property
    def believed(self) -> bool:
        """Whether the experts' first distributions were looked at: a bad expert would have been refused."""
        return self.errors.worst is not None

    def _distinct(self, x_t: Tokens, item: Int[Tensor, " batch"]) -> tuple[Tensor, Tensor]:
        """One row of each kind, and where every row finds its own among them."""
        rows = torch.arange(len(item), device=item.device)
        cell = torch.arange(x_t.shape[1], device=rows.device)
        key = hash_words(hash_words(cell, x_t).sum(-1), item)
        kinds, kind = key.unique(return_inverse=True)
        first = torch.full_like(kinds, len(rows)).scatter_reduce(0, kind, rows, "amin")
        twin = first[kind]
        # Two states with one hash have not been seen, but would be told apart.
        same = (x_t[twin] == x_t).all(-1) & (item[twin] == item)
        twin = torch.where(same, twin, rows)
        distinct = (twin == rows).nonzero().squeeze(-1)
        return distinct, torch.searchsorted(distinct, twin)

    def _from_memory(
        self, x_t: Tokens, item: Int[Tensor, " batch"], fresh: Bool[Tensor, " batch"]
    ) -> tuple[ExpertLogProbs, Bool[Tensor, " batch"]]:
        """What is said about these rows, and which of them had to be asked about."""
        assert self._known is not None
        recalled = fresh & self._known[item]
        if not fresh.any():
            return self._pass(x_t, item), ~recalled
        asked = (~recalled).nonzero().squeeze(-1)
        said = self._pass(x_t[asked], item[asked]) if len(asked) else None
        if self._first is None:
            assert said is not None
            self._first = said.new_zeros(len(said), len(self._known), *said.shape[2:])
        log_probs = self._first[:, item]
        if said is not None:
            log_probs = log_probs.index_copy(1, asked, said)
        new = (fresh & ~recalled).nonzero().squeeze(-1)
        self._first[:, item[new]] = log_probs[:, new]
        self._known[item[new]] = True
        return log_probs, ~recalled

    def _pass(self, x_t: Tokens, item: Int[Tensor, " batch"]) -> ExpertLogProbs:
        """One pass of every expert over the rows."""
        each = [self._one(index, x_t, item) for index in range(len(self.experts))]
        log_probs = side_by_side(each, (*x_t.shape, self.experts[0].vocabulary.size))
        self.errors.note(sum_error(log_probs, x_t == self.experts[0].vocabulary.mask))
        return log_probs

    def _one(self, index: int, x_t: Tokens, item: Int[Tensor, " batch"] | None = None) -> CellLogProbs:
        """One expert about the rows, filled up to a fixed size; about all items in turn unless told which."""
        rows = len(x_t)
        if self.batch is not None and self.batch.filled(rows) > rows:
            some = self._filled(rows, x_t.device)
            self.padded_passes += len(some) - rows
            x_t, item = x_t[some], some if item is None else item[some]
        encoded = self._encoded[index]
        # A copy: an expert that writes into what it is given must not change the state.
        said = self.experts[index].log_probs(x_t.clone(), encoded if item is None else take(encoded, item))
        check_shape(index, said, (*x_t.shape, self.experts[index].vocabulary.size))
        return said[:rows]

    def _at_cells(
        self, x_t: Tokens, item: Int[Tensor, " some"] | None, asked: AskedCells, there: AskedCells
    ) -> CellOutputs:
        """Every expert about some cells, which are `there` in these rows; those are filled up to a fixed size.

        About all items in turn unless told which.
        """
        said = CellOutputs(asked, self.experts[0].vocabulary.size, self.errors, self.chunk, self.top_k)
        some = self._filled(len(x_t), x_t.device)
        missing = len(some) - len(x_t)
        if missing:
            x_t, item = x_t[some], some if item is None else item[some]
            there = replace(there, shape=(len(some), x_t.shape[1]))
        for expert, encoded in zip(self.experts, self._encoded, strict=True):
            said.forward(expert, x_t, encoded if item is None else take(encoded, item), there)
            self.padded_passes += missing
        return said

    def _filled(self, rows: int, device: torch.device) -> Int[Tensor, " filled"]:
        """The rows, and the last of them once more for each that is missing."""
        size = rows if self.batch is None else self.batch.filled(rows)
        return torch.arange(size, device=device).clamp(max=max(rows - 1, 0))


def part_of(condition: Any, items: Int[Tensor, " some"]) -> Any:
    """The conditions of some of the items, whatever holds them."""
    return mapped(condition, partial(_indexed, items=items))


def _indexed(part: Any, items: Int[Tensor, " some"]) -> Any:
    if isinstance(part, list):
        return [part[item] for item in items.tolist()]
    try:
        # An array takes a tensor of one index for a number, and would lose the axis of items.
        index = items.cpu().numpy() if isinstance(part, np.ndarray) else items
        return None if part is None else part[index]
    except TypeError as error:
        raise InvalidInput(
            "condition: in batches, expected None, something that can be indexed by items, or a tuple or dict "
            f"of such, got {type(part).__name__}"
        ) from error


def joined(one: Any, other: Any) -> Any:
    """Two encodings, one item after the other."""
    if one is None:
        return None
    if isinstance(one, Tensor):
        return torch.cat([one, other])
    if isinstance(one, dict):
        return {key: joined(part, other[key]) for key, part in one.items()}
    parts = [joined(part, more) for part, more in zip(one, other, strict=True)]
    return type(one)(*parts) if hasattr(one, "_fields") else tuple(parts)
