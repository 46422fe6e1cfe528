"""Wrong responsibilities, routes and views."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from factordiff.composition import confidence, mixture, routing, superdiff, views
from factordiff.composition.composition import Composed
from factordiff.sampling import step
from tests.mutants.registry import Patch, after, mutant


@mutant("properties.test_superdiff:test_09_two_cells_a_step_are_spoken_by_one_expert")
def each_cell_mixed_on_its_own(patch: Patch) -> None:
    after(patch, superdiff.SuperDiff, "__call__", lambda composed, *given: replace(composed, log_kappa=None))


@mutant("properties.test_superdiff:test_09_two_cells_a_step_are_spoken_by_one_expert")
def the_loop_ignores_who_speaks(patch: Patch) -> None:
    original = step.draw_tokens
    patch.setattr(
        step, "draw_tokens", lambda log_p, c, *rest: original(log_p, replace(c, log_kappa=None), *rest)
    )


@mutant("properties.test_superdiff:test_09_superdiff_or_is_the_mixture_of_the_joints")
def superdiff_forgets_what_was_said(patch: Patch) -> None:
    original = superdiff.responsibilities
    patch.setattr(superdiff, "responsibilities", lambda ell, *rest: original(torch.zeros_like(ell), *rest))


@mutant("properties.test_superdiff:test_09_superdiff_or_is_the_mixture_of_the_joints")
def densities_of_what_was_composed(patch: Patch) -> None:
    original = step.log_prob_at

    def composed(log_p: Tensor, tokens: Tensor) -> Tensor:
        return original(log_p.exp().mean(0, keepdim=True).log().expand_as(log_p), tokens)

    patch.setattr(step, "log_prob_at", composed)


@mutant("properties.test_superdiff:test_10_superdiff_and_equalises_the_experts", 0, True)
def balance_without_what_is_carried(patch: Patch) -> None:
    original = superdiff.equalising_exponents
    patch.setattr(superdiff, "equalising_exponents", lambda p, m, ell: original(p, m, torch.zeros_like(ell)))


@mutant("properties.test_superdiff:test_10_superdiff_and_equalises_the_experts", 0, False)
def balance_the_wrong_way_round(patch: Patch) -> None:
    original = superdiff.equalising_mixture
    patch.setattr(superdiff, "equalising_mixture", lambda *given: original(*given).flip(0))


@mutant("properties.test_superdiff:test_10_experts_that_agree_share_equally", "linear")
def zero_over_zero(patch: Patch) -> None:
    patch.setattr(superdiff, "AGREEMENT", -1.0)


@mutant("properties.test_factors:test_11_temperatures_choose_who_speaks_and_not_what_is_said")
def temperatures_leak_into_what_is_said(patch: Patch) -> None:
    def leaking(composed: Composed, self: routing.Routing, log_p: Tensor, *rest: Any) -> Composed:
        T = torch.tensor(self.temperatures or [1.0] * len(log_p), dtype=log_p.dtype)
        assert composed.routing is not None
        return replace(composed, log_probs=routing.routed(confidence.temper(log_p, T), composed.routing))

    after(patch, routing.Routing, "__call__", leaking)


@mutant("properties.test_factors:test_11_temperatures_choose_who_speaks_and_not_what_is_said")
def order_by_tempered_margins(patch: Patch) -> None:
    original = routing.Routing.__init__
    patch.setattr(
        routing.Routing,
        "__init__",
        lambda self, *given, **named: original(self, *given, **{**named, "order": "tempered"}),
    )


@mutant("properties.test_factors:test_11_permuting_the_experts_changes_only_ties")
def experts_tie_to_the_highest(patch: Patch) -> None:
    patch.setattr(routing, "route", lambda doubts: len(doubts) - 1 - doubts.flip(0).argmin(0))


@mutant("composition.test_routing:test_revealed_cells_have_no_say")
def revealed_cells_have_a_say(patch: Patch) -> None:
    original = routing.aggregate_log_doubt
    patch.setattr(
        routing, "aggregate_log_doubt", lambda d, labels, m, how: original(d, labels, torch.ones_like(m), how)
    )


@mutant("properties.test_factors:test_11_routing_identities")
def the_least_sure_speaks(patch: Patch) -> None:
    patch.setattr(routing, "route", lambda doubts: doubts.argmax(0))


@mutant("properties.test_factors:test_11_experts_right_on_disjoint_halves_are_composed_exactly")
def routing_that_mixes(patch: Patch) -> None:
    patch.setattr(
        routing,
        "routed",
        lambda log_p, z: mixture.mixture(log_p, torch.full((len(log_p),), -math.log(len(log_p))).double()),
    )


@mutant("properties.test_factors:test_12_views_are_the_posterior_for_any_split_of_the_foreground")
def colors_not_renormalised(patch: Patch) -> None:
    after(patch, views, "split", lambda parts, log_p: (*parts[:2], log_p[..., 1:]))


@mutant("properties.test_order:test_14_margins_tell_confident_experts_apart")
def margins_in_float32(patch: Patch) -> None:
    def rounded(log_p: Tensor) -> Tensor:
        top = log_p.float().exp().topk(2, dim=-1).values
        return (1 - (top[..., 0] - top[..., 1])).log().double()

    patch.setattr(routing, "log_doubt", rounded)
    patch.setattr(confidence, "log_doubt", rounded)
