"""Savings that change a number or save nothing; adaptive rules that break their laws."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from factordiff.sampling import adaptive, panel, population, run
from factordiff.sampling.first_pass import FirstPass
from tests.mutants.registry import Patch, after, mutant

EXACT = "sampling.test_savings:test_every_saving_is_exact"
COUNTS = "sampling.test_savings:test_executed_passes_are_what_is_run_and_each_saving_saves"


@mutant(EXACT, "routing", 2)
def twins_of_another_item(patch: Patch) -> None:
    """Equal states of different items are taken for one, although their conditions differ."""
    original = panel.Panel._distinct

    def careless(self: Any, question: Any) -> Any:
        return original(self, question._replace(item=torch.zeros_like(question.item)))

    patch.setattr(panel.Panel, "_distinct", careless)


@mutant(EXACT, "own factors", 2)
def factors_of_the_place_in_flight(patch: Patch) -> None:
    original = run.State

    def misplaced(x_t: Tensor, masked: Tensor, ell: Tensor, item: Tensor) -> Any:
        return original(x_t, masked, ell, item - item.min())

    patch.setattr(run, "State", misplaced)


@mutant(EXACT, "mixture", 2)
def the_queue_forgets_who_left(patch: Patch) -> None:
    """Encodings stay where they were when their items leave."""
    patch.setattr(panel.Panel, "dismiss", lambda self, staying, leaving: None)


@mutant(EXACT, "superdiff", 2)
def items_that_leave_shift_the_densities(patch: Patch) -> None:
    original = population.Population.of

    def shifted(self: Any, items: Tensor) -> Any:
        part = original(self, items)
        return population.replace(part, log_density=part.log_density.roll(1, 1))

    patch.setattr(population.Population, "of", shifted)


@mutant("sampling.test_savings:test_a_first_pass_is_shared_between_methods")
def a_memory_that_mixes_up_its_items(patch: Patch) -> None:
    after(patch, FirstPass, "recall", lambda said, *given: said.flip(0))


@mutant("sampling.test_savings:test_a_first_pass_is_shared_between_methods")
def a_memory_that_remembers_nothing(patch: Patch) -> None:
    patch.setattr(FirstPass, "remember", lambda *given: None)


@mutant(COUNTS)
def duplicates_are_asked_about(patch: Patch) -> None:
    patch.setattr(panel.Panel, "_distinct", lambda self, question: (torch.arange(len(question.item)), None))


@mutant("sampling.test_adaptive:test_margins_that_round_to_one_are_kept_apart")
def margins_compared_after_rounding(patch: Patch) -> None:
    def rounded(rule: Any, belief: Any, candidates: Tensor, moment: Any) -> Tensor:
        return candidates & ((1 - belief.log_doubt.exp()).float() > rule.threshold)

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
    original = population.Population.masked_again

    def kept(self: Any, cells: Tensor, mask: int) -> Any:
        return population.replace(original(self, cells, mask), log_density=self.log_density)

    patch.setattr(population.Population, "masked_again", kept)
