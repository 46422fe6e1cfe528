"""Watching a run from outside: the loop's own parts, wrapped, tell what happens as it happens.

Nothing in the core knows about this. The reveal rule says which rows are asked and which cells are revealed, the
composition what every expert said and who was followed, and every pass begins by asking whether to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.method import Method
from factordiff.engine.decode import decode
from factordiff.experts.expert import Expert
from factordiff.sampling.gathered_evidence import gathered
from factordiff.sampling.reveal import Posterior, RevealRule, Wrapped
from factordiff.sampling.samples import Samples
from factordiff.solving.explanation import compared_log_doubts
from factordiff.state import SamplerState
from factordiff.types import CellLogProbs, Cells, ExpertLogProbs, Tokens

Said = dict[str, Any]
SUREST = -99.0  # the log-doubt written for a point mass, whose own is -inf


class Observer:
    """Follows the first particle of the one item of a run and reports each of its steps, one pass later."""

    def __init__(
        self,
        on_step: Callable[[Said], None],
        check: Callable[[], None],
        detail: bool = True,
        one_by_one: bool = False,  # a vote: a run of its own for each expert
        likeliest: int | None = None,  # in place of whole distributions: so many values, each with its share
    ) -> None:
        self.on_step, self.check, self.detail, self.one_by_one = on_step, check, detail, one_by_one
        self.likeliest = likeliest
        self.number, self.run = 0, 0
        self.followed = False  # whether the first particle takes part in the step under way
        self.pending: Said | None = None
        self.last: list[Said] = []  # the last step of each run that is over: its values come with the answer

    def watch(
        self, experts: Sequence[Expert], composition: Composition, rule: RevealRule
    ) -> tuple[list[Expert], Composition, RevealRule]:
        """The same parts, observed."""
        watched: list[Expert] = [WatchedExpert(expert, place, self) for place, expert in enumerate(experts)]
        return watched, WatchedComposition(composition, self), WatchedRule(rule, self)

    def encoding(self, place: int) -> None:
        """An expert encodes the item: in a vote this begins its own run."""
        if self.one_by_one:
            self._run_is_over()
            self.run = place

    def asked(self, candidates: Cells) -> None:
        """Before a pass: which rows take part."""
        self.followed = bool(candidates[0].any())

    def composed(
        self, log_probs: ExpertLogProbs, state: SamplerState, composed: Composed, composition: Composition
    ) -> None:
        """After a pass: what every expert said about the followed row, and who speaks for each cell."""
        if not self.followed:
            return
        self.flush(state.x_t[0])
        cells = state.masked[0].nonzero().flatten()
        doubts = log_doubt(log_probs[:, 0])
        said: Said = {
            "number": self.number,
            "run": self.run,
            "cells": cells.tolist(),
            "routing": None if composed.routing is None else composed.routing[0, cells].tolist(),
            "compared": _compared(log_probs, state, composition, cells),
            "weights": None if composed.weights is None else _hundredths(composed.weights[:, 0, cells]),
            "composed": self._voice(composed.log_probs[0], log_doubt(composed.log_probs[:1])[0], cells),
            "experts": [
                self._voice(own, doubt, cells) for own, doubt in zip(log_probs[:, 0], doubts, strict=True)
            ],
        }
        self.number += 1
        self.pending = said

    def revealed(self, cells: Cells) -> None:
        """The cells that the rule chose for this step."""
        if self.followed and self.pending is not None:
            self.pending["revealed"] = cells[0].nonzero().flatten().tolist()

    def flush(self, after: Int[Tensor, " cell"]) -> None:
        """Report the step before this one, now that its values are known."""
        if self.pending is not None:
            said, self.pending = self.pending, None
            self.on_step({**said, "x": after.tolist()})

    def finish(self, answers: Int[Tensor, "run cell"]) -> None:
        """Report the last step of every run."""
        self._run_is_over()
        for said in self.last:
            self.on_step({**said, "x": answers[said["run"]].tolist()})

    def _run_is_over(self) -> None:
        if self.pending is not None:
            self.last.append(self.pending)
            self.pending = None

    def _voice(self, log_probs: Tensor, doubt: Tensor, cells: Tensor) -> Said:
        """One distribution per masked cell: the likeliest color, its doubt, and on demand all of it."""
        own = log_probs[cells]
        voice: Said = {"best": own.argmax(-1).tolist(), "log_doubt": _rounded(doubt[cells])}
        if self.detail and self.likeliest is None:
            voice["probs"] = _thousandths(own).tolist()
        elif self.detail:
            voice["likeliest"] = [_with_shares(of_cell, self.likeliest or 0) for of_cell in _thousandths(own)]
        return voice


class WatchedExpert:
    """An expert that asks before every pass whether anybody still wants the answer."""

    def __init__(self, expert: Expert, place: int, observer: Observer) -> None:
        self.expert, self.place, self.observer = expert, place, observer
        self.vocabulary = expert.vocabulary

    def encode(self, condition: Any) -> Any:
        """The expert's own encoding."""
        self.observer.check()
        self.observer.encoding(self.place)
        return self.expert.encode(condition)

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The expert's own distributions."""
        self.observer.check()
        return self.expert.log_probs(x_t, encoded)


class WatchedComposition(Composition):
    """A composition that tells an observer what it was given and what it made of it."""

    def __init__(self, composition: Composition, observer: Observer) -> None:
        self.composition, self.observer = composition, observer

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The composition's own result."""
        composed = self.composition(log_probs, state)
        self.observer.composed(log_probs, state, composed, self.composition)
        return composed

    @property
    def remembers(self) -> bool:
        """As the composition has it."""
        return self.composition.remembers

    def target(self, experts: int) -> Float[Tensor, " expert"] | None:
        """The composition's own target."""
        return self.composition.target(experts)


class WatchedRule(Wrapped):
    """A reveal rule that tells an observer which rows are asked and which cells are chosen."""

    def __init__(self, rule: RevealRule, observer: Observer) -> None:
        self.rule, self.observer = rule, observer

    def candidates(self, state: SamplerState) -> Cells:
        """The rule's own candidates."""
        candidates = self.rule.candidates(state)
        self.observer.asked(candidates)
        return candidates

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """The rule's own choice."""
        cells = self.rule.choose(posterior, candidates, state)
        self.observer.revealed(cells)
        return cells


def decode_watched(
    how: Method,
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"],
    condition: Any,
    rule: RevealRule,
    observer: Observer,
    *,
    seed: int,
    items: Int[Tensor, " item"],
    trace: bool = False,
) -> Samples:
    """Decode one item under an observer; evidence that the method asks for is gathered before the first step."""
    composition, before = gathered(
        how.composition,
        [WatchedExpert(expert, place, observer) for place, expert in enumerate(experts)],
        x_t,
        condition,
        seed=seed,
        items=items,
    )
    watched, composition, reveal = observer.watch(experts, composition, rule)
    samples = decode(
        replace(how, composition=composition),
        watched,
        x_t,
        condition,
        reveal=reveal,
        seed=seed,
        items=items,
        trace=trace,
    ).after(before)
    observer.finish(samples.particles[0, :: how.particles])
    return samples


def _compared(
    log_probs: ExpertLogProbs, state: SamplerState, composition: Composition, cells: Tensor
) -> list[list[float]] | None:
    """What routing compares at each masked cell."""
    doubts = compared_log_doubts(composition, log_probs, state)
    return None if doubts is None else [_rounded(doubt[0, cells]) for doubt in doubts]


def _thousandths(log_probs: Tensor) -> Tensor:
    return (log_probs.exp().nan_to_num() * 1000).round().to(torch.int64)


def _hundredths(weights: Tensor) -> list[list[int]]:
    return (weights.nan_to_num() * 100).round().to(torch.int64).tolist()


def _with_shares(shares: Int[Tensor, " value"], most: int) -> list[list[int]]:
    """The likeliest values with their shares, the first of them first; none that would be shown as nothing."""
    best = shares.argsort(descending=True, stable=True)[:most].tolist()
    return [[value, int(shares[value])] for value in best if shares[value]]


def _rounded(doubts: Tensor) -> list[float]:
    """Log-doubts for JSON: two decimals, and no infinities."""
    return [round(doubt, 2) for doubt in doubts.double().nan_to_num(nan=0.0).clamp(min=SUREST).tolist()]
