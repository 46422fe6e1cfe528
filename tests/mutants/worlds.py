"""Wrong bounds, which know less than they should, and wrong fits, which know more."""

from __future__ import annotations

from dataclasses import replace

import torch

from factordiff.fitting.data import FittingData
from factordiff.worlds import bounds, compare, comparison, router_fitting, sides
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


@mutant("worlds.test_fitted:test_nobody_learns_from_what_is_asked_in_the_end")
def a_fit_that_sees_the_test_queries(patch: Patch) -> None:
    original = compare.assembled
    patch.setattr(
        compare,
        "assembled",
        lambda rows, setting, queries, title: original(
            rows, replace(setting, validation=queries), queries, title
        ),
    )


@mutant("worlds.test_fitted:test_what_is_alike_is_on_one_side")
def sides_that_are_cut_through_clusters(patch: Patch) -> None:
    quarter = 10
    patch.setattr(
        sides, "sides", lambda queries: (torch.arange(quarter, len(queries)), torch.arange(quarter))
    )


@mutant("worlds.test_fitted:test_what_is_given_is_never_hidden")
def a_router_that_is_asked_about_given_cells(patch: Patch) -> None:
    patch.setattr(
        router_fitting,
        "FittingData",
        lambda x_0, condition, asked, layout: FittingData(x_0, condition, None, layout),
    )
