"""Wrong evidence: of others, of nobody yet, of what was to be held out; wrong owners."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from factordiff.composition import evidence
from factordiff.composition.composition import Composed
from factordiff.sampling import demonstration_evidence, given_evidence
from factordiff.state import SamplerState
from factordiff.streams import Draws
from tests.mutants.registry import Patch, after, mutant

TRUTH = "properties.test_evidence:test_15_each_factor_is_drawn_from_the_mixture_of_the_experts_laws"


@mutant(TRUTH, "halves")
def evidence_of_other_factors_leaks_in(patch: Patch) -> None:
    patch.setattr(
        evidence, "factor_sums", lambda of_cells, labels: of_cells.sum(-1, keepdim=True).expand_as(of_cells)
    )


@mutant(TRUTH, "three experts")
def a_candidate_counts_before_it_is_revealed(patch: Patch) -> None:
    original = evidence.Evidence.__call__

    def early(self: evidence.Evidence, log_p: Tensor, state: SamplerState) -> Composed:
        likeliest = torch.where(state.masked, log_p.amax(-1).double(), state.log_density)
        return original(self, log_p, replace(state, log_density=likeliest))

    patch.setattr(evidence.Evidence, "__call__", early)


@mutant(TRUTH, "interleaved")
def evidence_weights_that_do_not_add_up_to_one(patch: Patch) -> None:
    patch.setattr(evidence, "responsibilities", lambda ell, T, bias, log_omega: T * (ell + bias) + log_omega)


@mutant("sampling.test_given_evidence:test_a_fold_is_scored_while_it_is_hidden", 4)
def a_held_out_fold_is_visible(patch: Patch) -> None:
    original = given_evidence._scored

    def seen(experts: Any, x_t: Tensor, condition: Any, rounds: Any) -> Any:
        return original(experts, x_t, condition, ((torch.zeros_like(h), scored) for h, scored in rounds))

    patch.setattr(given_evidence, "_scored", seen)


@mutant(
    "sampling.test_demonstration_evidence:"
    "test_an_answer_is_scored_where_it_is_hidden_and_every_rate_counts_alike"
)
def a_demonstration_that_is_scored_is_visible(patch: Patch) -> None:
    patch.setattr(demonstration_evidence, "replace", lambda state, x_t: state)


@mutant("properties.test_evidence:test_15_drawn_orders_draw_the_truth", "halves")
def one_owner_for_the_whole_row(patch: Patch) -> None:
    def of_the_row(self: Draws, purpose: Any, step: Tensor, labels: Tensor) -> Tensor:
        return self.rows(purpose, step)[:, None].expand(labels.shape)

    patch.setattr(Draws, "factors", of_the_row)


@mutant("properties.test_evidence:test_15_several_cells_of_a_factor_are_spoken_by_one_expert")
def each_cell_of_a_factor_mixed_on_its_own(patch: Patch) -> None:
    after(patch, evidence.Evidence, "__call__", lambda c, *given: replace(c, log_kappa=None, owners=None))


@mutant("composition.test_evidence:test_every_item_keeps_its_evidence_and_factors_in_any_batch", 1.0, False)
def evidence_of_the_place_in_flight(patch: Patch) -> None:
    original = evidence.Evidence.evidence_of_cells

    def misplaced(self: evidence.Evidence, state: SamplerState) -> Tensor:
        return original(self, replace(state, item=state.item - state.item.min()))

    patch.setattr(evidence.Evidence, "evidence_of_cells", misplaced)
