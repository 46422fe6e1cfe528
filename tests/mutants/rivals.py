"""Rivals built wrongly: speakers not drawn as they should be, votes and relays that go astray."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from factordiff.composition import drawn_expert
from factordiff.sampling import orders, relay, samples
from factordiff.sampling.reveal import ByConfidence
from factordiff.state import SamplerState
from factordiff.streams import Draws, Purpose
from tests.mutants.registry import Patch, after, mutant
from tests.sampling import test_orders


@mutant("composition.test_drawn_expert:test_its_law_is_the_mixtures", ByConfidence(2))
def one_expert_drawn_for_all_cells_of_a_step(patch: Patch) -> None:
    after(
        patch,
        drawn_expert.DrawnExpert,
        "__call__",
        lambda composed, *given: replace(composed, log_kappa=composed.log_kappa[..., 0]),
    )


@mutant("composition.test_drawn_expert:test_it_draws_what_the_mixture_draws", ByConfidence(4))
def who_speaks_and_what_is_said_share_their_number(patch: Patch) -> None:
    original = Draws.cells
    patch.setattr(Draws, "cells", lambda self, purpose, *rest: original(self, Purpose.TOKEN, *rest))


@mutant("sampling.test_orders:test_a_particle_in_blocks_is_a_run_in_blocks")
def all_orders_the_same(patch: Patch) -> None:
    patch.setattr(orders.InBlocks, "block", lambda self, state: torch.ones_like(state.masked))


@mutant("sampling.test_orders:test_the_answer_has_most_votes_and_ties_go_to_the_likeliest")
def likelihood_before_votes(patch: Patch) -> None:
    patch.setattr(test_orders, "most_frequent", lambda runs, likely: likely.nan_to_num().argmax(-1))


@mutant("sampling.test_orders:test_ties_are_judged_by_the_mixture_along_the_path")
def ties_to_the_first_order(patch: Patch) -> None:
    original = samples.most_frequent
    patch.setattr(samples, "most_frequent", lambda runs, likely: original(runs, torch.zeros_like(likely)))


@mutant("sampling.test_relay:test_it_is_the_relay_that_was_written_down", 3, 2)
def the_least_sure_goes_on(patch: Patch) -> None:
    original = relay.Relayed.revised

    def reversed_doubt(self: relay.Relayed, state: SamplerState, doubt: Tensor) -> Any:
        turned = replace(state, log_doubt=(1.0 - state.log_doubt.exp()).log())
        after, ancestors = original(self, turned, (1.0 - doubt.exp()).log())
        rows = (torch.arange(len(ancestors))[:, None] * state.particles + ancestors).flatten()
        return replace(after, log_doubt=state.log_doubt[rows]), ancestors

    patch.setattr(relay.Relayed, "revised", reversed_doubt)


@mutant("sampling.test_relay:test_it_is_the_relay_that_was_written_down", 3, 3)
def only_filled_cells_are_judged(patch: Patch) -> None:
    original = relay.Relayed.revised
    patch.setattr(
        relay.Relayed,
        "revised",
        lambda self, state, doubt: original(self, state, torch.full_like(doubt, -torch.inf)),
    )


@mutant("sampling.test_relay:test_densities_belong_to_the_answer")
def a_relay_that_keeps_the_densities(patch: Patch) -> None:
    original = relay.Relayed.revised

    def kept(self: relay.Relayed, state: SamplerState, doubt: Tensor) -> Any:
        after, ancestors = original(self, state, doubt)
        return replace(after, log_density=state.log_density), ancestors

    patch.setattr(relay.Relayed, "revised", kept)


@mutant("sampling.test_relay:test_the_trace_follows_the_baton")
def a_relay_that_nobody_hears_of(patch: Patch) -> None:
    after(patch, relay.Relayed, "revised", lambda found, *given: (found[0], None))
