"""Wrong routers and wrong fits: unequal from the start, partial to a place, told what is hidden, for anybody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from factordiff.composition import learned, router, router_features, router_store
from factordiff.fitting import bounds, predictions, router_fit
from factordiff.networks.parameters import Layout
from tests.fitting.test_router_fit import AllButCertain
from tests.mutants.registry import Patch, after, mutant

UNTRAINED = "composition.test_router:test_before_training_it_is_the_uniform_mixture"
NESTED = "fitting.test_predictions:test_hidden_cells_are_nested_and_the_path_is_a_samplers"


@mutant(UNTRAINED, "shared", None, 3, torch.float64)
def a_last_layer_that_is_not_zero(patch: Patch) -> None:
    after(patch, Layout, "initial", lambda vector, *given: vector + 1e-3 * torch.arange(len(vector)).sin())


@mutant(UNTRAINED, "neighbourhood", (3, 4), 10, torch.float32)
def exponents_that_do_not_begin_at_one_over_m(patch: Patch) -> None:
    patch.setattr(learned, "exponents", lambda logits: logits.exp())


@mutant("composition.test_router:test_permuted_experts_have_permuted_weights", 3)
def the_first_expert_is_favoured(patch: Patch) -> None:
    def partial(routed: router.RouterOutput, *given: Any, **named: Any) -> router.RouterOutput:
        favour = torch.zeros(len(routed.logits), 1, 1)
        favour[0] = 1.0
        return replace_logits(routed, routed.logits + favour)

    after(patch, router, "route_by", partial)


def replace_logits(routed: router.RouterOutput, logits: Tensor) -> router.RouterOutput:
    return router.RouterOutput(logits, routed.complement)


@mutant("composition.test_router:test_features_are_the_loop")
def an_expert_counts_among_the_others(patch: Patch) -> None:
    original = router_features.features

    def counted(log_probs: Tensor, state: Any, layout: Any, evidence: bool = False) -> Tensor:
        found = original(log_probs, state, layout, evidence)
        found[..., router_features.NAMES.index("agreement")] += 1 / len(log_probs)
        return found

    patch.setattr(router_features, "features", counted)


@mutant("composition.test_router:test_other_experts_are_refused")
def any_experts_will_do(patch: Patch) -> None:
    patch.setattr(router_store, "check_experts", lambda *given, **named: None)


@mutant(NESTED)
def evidence_of_cells_that_are_hidden(patch: Patch) -> None:
    original = predictions._heard

    def told(*given: Any) -> predictions.Predictions:
        found = original(*given)
        return replace(found, log_density=torch.where(found.asked, found.of_truth, found.log_density))

    patch.setattr(predictions, "_heard", told)


@mutant(NESTED)
def masks_that_are_not_nested(patch: Patch) -> None:
    after(patch, predictions, "_heard", lambda found, *given: replace(found, asked=found.asked.flip(0)))


@mutant("fitting.test_bounds:test_two_experts_the_sweep_is_exact", 1)
def a_sweep_that_stops_at_the_first_interval(patch: Patch) -> None:
    def first(lead: Tensor, numbers: Tensor, expert: int) -> bounds.Best:
        return bounds.Best(tuple(numbers.tolist()), bounds.share_right(lead, numbers))

    patch.setattr(bounds, "best_along", first)


@mutant("fitting.test_router_fit:test_what_is_fitted_is_what_is_composed", "mixture", False)
def a_likelihood_without_normalised_weights(patch: Patch) -> None:
    def loose(log_probs: Tensor, routed: router.RouterOutput, x_0: Tensor, head: str) -> Tensor:
        said = log_probs.gather(-1, x_0[None, ..., None].expand(len(log_probs), *x_0.shape, 1)).squeeze(-1)
        return (routed.logits + said).logsumexp(0)

    patch.setattr(router_fit, "log_likelihood", loose)


@mutant(
    "fitting.test_router_fit:test_what_a_product_is_trained_by_is_what_it_is_held_against",
    AllButCertain,
)
def vetoes_that_are_weaker_while_a_product_is_trained(patch: Patch) -> None:
    patch.setattr(router_fit, "LEAST_SINGLE", router_features.LEAST_LOG)
