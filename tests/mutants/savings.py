"""Savings that change a number or save nothing; adaptive rules that break their laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from factordiff.engine import expert_batch, queue
from factordiff.sampling import adaptive, blocks
from factordiff.state import SamplerState
from tests.mutants.registry import Patch, after, mutant

EXACT = "engine.test_engine:test_every_saving_is_exact"
COUNTS = "engine.test_engine:test_executed_passes_are_what_is_run_and_sharing_saves"


@mutant(EXACT, "routing", 2)
def twins_of_another_item(patch: Patch) -> None:
    """Equal states of different items are taken for one, although their conditions differ."""
    original = expert_batch.ExpertBatch._distinct

    def careless(self: Any, x_t: Tensor, item: Tensor) -> Any:
        return original(self, x_t, torch.zeros_like(item))

    patch.setattr(expert_batch.ExpertBatch, "_distinct", careless)


@mutant(EXACT, "own factors", 2)
def factors_of_the_place_in_flight(patch: Patch) -> None:
    original = queue.Queue._admit
    patch.setattr(
        queue.Queue,
        "_admit",
        lambda self, items: replace(
            (admitted := original(self, items)),
            item=admitted.item - admitted.item.min() if items else admitted.item,
        ),
    )


@mutant(EXACT, "mixture", 2)
def the_queue_forgets_who_left(patch: Patch) -> None:
    """Encodings stay where they were when their items leave."""
    patch.setattr(expert_batch.ExpertBatch, "retire", lambda self, staying: None)


@mutant(EXACT, "superdiff", 2)
def items_that_leave_shift_the_densities(patch: Patch) -> None:
    original = queue.some_rows

    def shifted(state: SamplerState, rows: Tensor) -> SamplerState:
        part = original(state, rows)
        return replace(part, log_density=part.log_density.roll(1, 1))

    patch.setattr(queue, "some_rows", shifted)


@mutant("engine.test_engine:test_what_was_said_at_the_start_is_forgotten_with_the_item")
def a_memory_that_mixes_up_its_items(patch: Patch) -> None:
    original = expert_batch.ExpertBatch.retire

    def kept(self: Any, staying: Tensor) -> None:
        first, known = self._first, self._known
        original(self, staying)
        if first is not None:
            self._first, self._known = first[:, : len(staying)], known[: len(staying)]

    patch.setattr(expert_batch.ExpertBatch, "retire", kept)


@mutant("engine.test_engine:test_particles_that_leave_their_start_at_different_steps_share_its_pass")
def a_memory_that_remembers_nothing(patch: Patch) -> None:
    original = expert_batch.ExpertBatch._from_memory

    def forgetful(self: Any, *given: Any) -> Any:
        self._known = torch.zeros_like(self._known)
        return original(self, *given)

    patch.setattr(expert_batch.ExpertBatch, "_from_memory", forgetful)


@mutant(COUNTS)
def duplicates_are_asked_about(patch: Patch) -> None:
    patch.setattr(
        expert_batch.ExpertBatch,
        "_distinct",
        lambda self, x_t, item: (torch.arange(len(item)), torch.arange(len(item))),
    )


@mutant("engine.test_window:test_whoever_is_full_leaves_at_once")
def full_rows_are_noticed_a_step_late(patch: Patch) -> None:
    exchange = queue.Queue.exchange

    def late(self: queue.Queue, state: SamplerState) -> SamplerState:
        looked = self._unseen <= 1
        state = exchange(self, state)
        self._unseen += int(looked)
        return state

    patch.setattr(queue.Queue, "exchange", late)


@mutant("engine.test_window:test_a_block_that_the_end_cuts_short_has_a_whole_window")
def a_window_beyond_the_end_of_the_row(patch: Patch) -> None:
    def unshifted(rule: blocks.ByBlock, state: SamplerState) -> Tensor:
        begun, first = (part.to(torch.uint8).argmax(-1, keepdim=True) for part in (state.start, state.masked))
        width = min(rule.length, state.x_t.shape[1])
        return (first - (first - begun) % rule.length) + torch.arange(width)

    patch.setattr(blocks.ByBlock, "cells_now", unshifted)


@mutant("sampling.test_adaptive:test_margins_that_round_to_one_are_kept_apart")
def margins_compared_after_rounding(patch: Patch) -> None:
    def rounded(rule: Any, posterior: Any, candidates: Tensor, state: Any) -> Tensor:
        return candidates & ((1 - posterior.log_doubt.exp()).float() > rule.threshold)

    patch.setattr(adaptive.ByMargin, "choose", rounded)


@mutant(
    "sampling.test_adaptive:test_at_least_the_surest_and_only_masked_cells_and_no_doubtful_before_a_surer"
)
def nobody_is_sure_enough(patch: Patch) -> None:
    patch.setattr(adaptive, "surest_one", lambda log_doubt, among: torch.zeros_like(among))


@mutant("sampling.test_adaptive:test_gamma_zero_reveals_what_has_no_entropy_and_the_surest_of_the_others")
def entropies_in_single_precision(patch: Patch) -> None:
    after(patch, adaptive, "entropy", lambda nats, log_probs: nats.float().round(decimals=3))


@mutant("sampling.test_adaptive:test_what_was_taken_back_is_not_counted_twice")
def repairs_that_keep_the_densities(patch: Patch) -> None:
    original = adaptive.Repaired.revised

    def kept(self: adaptive.Repaired, state: SamplerState, doubt: Tensor) -> tuple[SamplerState, None]:
        return replace(original(self, state, doubt)[0], log_density=state.log_density), None

    patch.setattr(adaptive.Repaired, "revised", kept)
