"""The experts at the table: told about each item once, asked about as few rows as will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.composition.composition import check_log_probs, refuse, sum_error
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert, take, voices
from factordiff.sampling.first_pass import FirstPass
from factordiff.sampling.request import check_encoded
from factordiff.sampling.savings import Bucket, Savings
from factordiff.streams import hash_words
from factordiff.types import CellLogProbs, Cells, ExpertLogProbs, Spoken, Tokens


class Question(NamedTuple):
    """The rows that the loop wants to know about."""

    x_t: Tokens
    masked: Cells
    item: Int[Tensor, " batch"]  # position in flight
    ids: Int[Tensor, " batch"]
    fresh: Bool[Tensor, " batch"]  # nothing revealed yet

    def of(self, rows: Int[Tensor, " some"]) -> Question:
        """Some of the rows."""
        return Question(*(part[rows] for part in self))


class Panel:
    """The experts, and what each was told about the items in flight."""

    def __init__(
        self,
        experts: Sequence[Expert],
        condition: Any,
        bucket: Bucket | None,
        savings: Savings,
        first_pass: FirstPass | None,
        particles: int,
    ) -> None:
        self.experts, self.condition, self.bucket = experts, condition, bucket
        self.size = experts[0].vocabulary.size
        self._voices = [voices(expert) for expert in experts]
        self.padded_passes = 0
        self._encoded: list[Any] = []
        self._worst_sum: Tensor | None = None
        self._share = (savings.first_pass and particles > 1, savings.duplicates and particles > 1)
        # Particles may leave their common start at different steps; what they share is forgotten with the item.
        self._own_memory = first_pass is None
        self._first_pass = first_pass
        if first_pass is None and self._share[0]:
            self._first_pass = FirstPass()

    def admit(self, places: Int[Tensor, " item"]) -> None:
        """Tell the experts about items that take off, after those already in flight."""
        items = len(places)
        if self.bucket is None:  # everybody, once
            new = [expert.encode(self.condition) for expert in self.experts]
        else:
            part = part_of(self.condition, places[self._filled(items, places.device)])
            new = [expert.encode(part) for expert in self.experts]
            items = self.bucket.filled(items)
        check_encoded(tuple(new), items)
        if items > len(places):
            new = [take(one, torch.arange(len(places), device=places.device)) for one in new]
        self._encoded = (
            [joined(old, more) for old, more in zip(self._encoded, new, strict=True)]
            if self._encoded
            else new
        )

    def dismiss(self, staying: Int[Tensor, " item"], leaving_ids: Int[Tensor, " some"]) -> None:
        """Forget the items that are not among those staying."""
        self._encoded = [take(one, staying) for one in self._encoded]
        if self._own_memory and self._first_pass is not None:
            self._first_pass.forget(leaving_ids.tolist())

    def ask(self, question: Question) -> tuple[ExpertLogProbs, Int[Tensor, " batch"]]:
        """What every expert says about every row, and how many passes were run for it."""
        distinct, back = self._distinct(question)
        asked = question if back is None else question.of(distinct)
        passes = torch.zeros_like(asked.item)
        spoken: list[Tensor] = []
        for index, speakers in enumerate(self._voices):
            said, run = self._hear(index, asked)
            spoken.append(said)
            passes = passes + speakers * run.to(passes.dtype)
        log_probs = self.side_by_side(spoken)
        if self._worst_sum is None:  # a bad expert is refused at once; later passes are checked at the end
            check_log_probs(log_probs, asked.masked)
        self.note(sum_error(log_probs, asked.masked))
        if back is None:
            return log_probs, passes
        return log_probs[:, back], torch.zeros_like(question.item).index_copy(0, distinct, passes)

    def ask_all(self, x_t: Tokens) -> tuple[Tensor, ...]:
        """What every expert says about all items in flight, a row each: by a pass, and nothing else."""
        return tuple(self._pass(index, x_t) for index in range(len(self.experts)))

    def side_by_side(self, spoken: Sequence[Tensor]) -> ExpertLogProbs:
        """The experts' distributions in one tensor, every voice for itself, in the finest of their precisions."""
        each: list[CellLogProbs] = []
        for speakers, said in zip(self._voices, spoken, strict=True):
            each += [said] if speakers == 1 else said.unbind(1)
        dtype = torch.float64 if any(said.dtype == torch.float64 for said in each) else torch.float32
        return torch.stack([said.to(dtype) for said in each])

    @property
    def believed(self) -> bool:
        """Whether the experts' first distributions were looked at: a bad expert would have been refused."""
        return self._worst_sum is not None

    @property
    def remembers(self) -> bool:
        """Whether some of what it is asked may be known without a pass."""
        return self._first_pass is not None

    def note(self, error: Float[Tensor, " expert"]) -> None:
        """By how much distributions failed to add up to one."""
        self._worst_sum = error if self._worst_sum is None else torch.maximum(self._worst_sum, error)

    def check(self) -> None:
        """Refuse the result if some expert's distributions went bad on the way."""
        if self._worst_sum is not None:
            refuse(self._worst_sum)

    def _distinct(self, question: Question) -> tuple[Tensor, Tensor | None]:
        """One row of each kind, and where every row finds its own; None where every row stands for itself."""
        rows = torch.arange(len(question.item), device=question.item.device)
        at_start, everywhere = self._share
        if not (at_start or everywhere):
            return rows, None
        may_share = question.fresh if not everywhere else torch.ones_like(question.fresh)
        cell = torch.arange(question.x_t.shape[1], device=rows.device)
        digest = hash_words(cell, question.x_t).sum(-1)
        key = hash_words(digest, question.item, torch.where(may_share, -1, rows))
        kinds, kind = key.unique(return_inverse=True)
        first = torch.full_like(kinds, len(rows)).scatter_reduce(0, kind, rows, "amin")
        twin = first[kind]
        # Two states with one hash have not been seen, but would be told apart.
        same = (question.x_t[twin] == question.x_t).all(-1) & (question.item[twin] == question.item)
        twin = torch.where(same, twin, rows)
        distinct = (twin == rows).nonzero().squeeze(-1)
        return distinct, torch.searchsorted(distinct, twin)

    def _hear(self, index: int, question: Question) -> tuple[Spoken, Bool[Tensor, " batch"]]:
        """One expert about these rows: from memory where it was asked before, else by a pass."""
        memory, expert = self._first_pass, self.experts[index]
        everyone = torch.ones_like(question.fresh)
        if memory is None or not question.fresh.any():
            return self._pass(index, question.x_t, question.item), everyone
        fresh = question.fresh.nonzero().squeeze(-1)
        ids = question.ids[fresh].tolist()
        known = memory.known(expert, ids).to(fresh.device)
        asked = everyone.index_fill(0, fresh[known], False)
        unknown = asked.nonzero().squeeze(-1)
        old = [one for one, is_known in zip(ids, known.tolist(), strict=True) if is_known]
        parts = [(fresh[known], memory.recall(expert, old, question.x_t[fresh[known]]))] if old else []
        if len(unknown):
            parts.append((unknown, self._pass(index, question.x_t[unknown], question.item[unknown])))
        where = torch.cat([rows for rows, _ in parts])
        said = torch.cat([part for _, part in parts])[where.argsort()]
        new = fresh[~known]
        memory.remember(expert, question.ids[new].tolist(), question.x_t[new], said[new])
        return said, asked

    def _pass(self, index: int, x_t: Tokens, item: Int[Tensor, " batch"] | None = None) -> Spoken:
        """One pass of one expert over the rows, filled up to a fixed size; of all items in turn unless told which."""
        (rows, cells), speakers = x_t.shape, self._voices[index]
        if self.bucket is not None and self.bucket.filled(rows) > rows:
            some = self._filled(rows, x_t.device)
            self.padded_passes += len(some) - rows
            x_t, item = x_t[some], some if item is None else item[some]
        encoded = self._encoded[index]
        said = self.experts[index].log_probs(x_t, encoded if item is None else take(encoded, item))[:rows]
        wanted = (rows, cells, self.size) if speakers == 1 else (rows, speakers, cells, self.size)
        if said.shape != wanted:
            raise InvalidInput(
                f"experts: expert {index} returned log-probabilities of shape {tuple(said.shape)}, "
                f"expected {wanted} ({'batch, cell, value' if speakers == 1 else 'batch, voice, cell, value'})"
            )
        return said

    def _filled(self, rows: int, device: torch.device) -> Int[Tensor, " filled"]:
        """The rows, and the last of them once more for each that is missing."""
        size = rows if self.bucket is None else self.bucket.filled(rows)
        return torch.arange(size, device=device).clamp(max=max(rows - 1, 0))


def part_of(condition: Any, items: Int[Tensor, " some"]) -> Any:
    """The conditions of some of the items, whatever holds them."""
    if condition is None:
        return None
    if isinstance(condition, dict):
        return {key: part_of(part, items) for key, part in condition.items()}
    if isinstance(condition, tuple):
        parts = [part_of(part, items) for part in condition]
        return type(condition)(*parts) if hasattr(condition, "_fields") else tuple(parts)
    try:
        return condition[items]
    except TypeError as error:
        raise InvalidInput(
            f"condition: with a bucket, expected None, something that can be indexed by items, or a tuple or dict "
            f"of such, got {type(condition).__name__}"
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
