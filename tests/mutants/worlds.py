"""Wrong bounds: an oracle and an owner that know less than they should."""

from __future__ import annotations

import torch

from factordiff.worlds import bounds, comparison
from tests.mutants.registry import Patch, mutant

BOUNDS = "worlds.test_compare:test_bounds_against_slow_versions"
CLUSTERS = "worlds.test_compare:test_an_interval_is_over_clusters"


@mutant(BOUNDS)
def an_oracle_that_does_not_look_at_first_choices(patch: Patch) -> None:
    patch.setattr(
        bounds.Oracle,
        "best",
        lambda self, log_probs, truth: bounds.log_prob_at(log_probs, truth).argmax(0),
    )


@mutant(BOUNDS)
def the_owner_of_the_first_item_is_told_for_all(patch: Patch) -> None:
    original = bounds._of_rows
    patch.setattr(
        bounds,
        "_of_rows",
        lambda name, of_items, state: torch.zeros_like(state.x_t) + original(name, of_items, state)[:1],
    )


@mutant(CLUSTERS)
def every_query_is_a_cluster_of_its_own(patch: Patch) -> None:
    original = comparison._interval
    patch.setattr(
        comparison,
        "_interval",
        lambda sums, sizes, clusters: original(sums, sizes, comparison.np.arange(len(clusters)).astype(str)),
    )
