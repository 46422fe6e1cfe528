"""Wrong losses, wrong orders, shared numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from factordiff.diffusion import objectives, schedule
from factordiff.sampling import reveal, step
from factordiff.state import SamplerState
from factordiff.streams import Draws, Purpose, categorical, uniform
from tests.mutants.registry import Patch, after, mutant


@mutant("properties.test_losses:test_01_the_loss_of_an_exact_expert_is_the_entropy")
def main_text_loss_weight(patch: Patch) -> None:
    patch.setattr(objectives, "loss_weight", lambda t: 1 / (t * (1 - t)))


@mutant("properties.test_losses:test_01_the_loss_of_an_exact_expert_is_the_entropy")
def loss_divided_by_the_masked_cells(patch: Patch) -> None:
    after(
        patch, objectives, "diffusion_loss",
        lambda loss, kind, log_p, x_0, x_t, t: loss * x_0.numel() / (x_t == log_p.shape[-1]).sum(),
    )  # fmt: skip


@mutant("properties.test_losses:test_02_full_is_occupancy_and_color_given_foreground")
def color_counted_at_background_too(patch: Patch) -> None:
    patch.setitem(objectives.OBJECTIVES, "color", objectives.full)


@mutant("properties.test_single:test_03_a_single_exact_expert_in_margin_order_gives_its_joint")
def order_by_the_candidate_just_drawn(patch: Patch) -> None:
    """The draws are counter-based, so the value that will be drawn can be looked at before cells are chosen."""
    here: list[SamplerState] = []
    propose, honest = step.propose, step.log_doubt

    def remembering(state: SamplerState, *rest: Any) -> Any:
        here.append(state)
        return propose(state, *rest)

    def doubt(log_p: Tensor) -> Tensor:
        if not here:  # enumeration draws nothing
            return honest(log_p)
        draws, clock = here[-1].draws, here[-1].clock
        tokens = categorical(log_p, draws.cells(Purpose.TOKEN, clock, log_p.shape[1]))
        return -log_p.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

    patch.setattr(step, "propose", remembering)
    patch.setattr(step, "log_doubt", doubt)


@mutant("sampling.test_reveal:test_ties_go_to_the_lowest_cell")
def cells_tie_to_the_highest(patch: Patch) -> None:
    original = reveal.surest
    patch.setattr(reveal, "surest", lambda d, among, n: original(d.flip(-1), among.flip(-1), n).flip(-1))


@mutant("properties.test_order:test_13_every_cell_is_revealed_once_and_idle_steps_cost_nothing")
def idle_steps_ask_the_experts(patch: Patch) -> None:
    patch.setattr(reveal.ByConfidence, "due", lambda rule, state: state.clock)
    patch.setattr(reveal.ByConfidence, "candidates", lambda rule, state: state.masked)


@mutant("properties.test_order:test_13_every_cell_is_revealed_once_and_idle_steps_cost_nothing")
def quota_rounded_up(patch: Patch) -> None:
    patch.setattr(reveal.ByConfidence, "quota", lambda rule, state: -(-state.start.sum(-1) // rule.steps))


@mutant("properties.test_single:test_04_ancestral_sampling_is_off_by_one_over_T")
def reveals_forget_that_time_has_passed(patch: Patch) -> None:
    patch.setattr(schedule, "reveal_probability", lambda t, s: t - s)


@mutant("properties.test_single:test_04_ancestral_sampling_is_off_by_one_over_T")
def reveals_and_values_share_their_numbers(patch: Patch) -> None:
    def cells(draws: Draws, purpose: Purpose, step: Tensor, count: int) -> Tensor:
        return uniform(
            draws.seed, draws.item[:, None], draws.particle[:, None], step[:, None], torch.arange(count)
        )

    patch.setattr(Draws, "cells", cells)


@mutant(
    "sampling.test_sampler:test_an_item_draws_the_same_numbers_alone_in_a_batch_and_in_any_order",
    "mixture",
    reveal.ByConfidence(3),
)
def numbers_belong_to_the_place_in_the_batch(patch: Patch) -> None:
    original = SamplerState.begin
    patch.setattr(SamplerState, "begin", lambda *given, ids=None, **named: original(*given, **named))
