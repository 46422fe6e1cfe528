"""Validation in two parts: what rows are fitted on, and what they are measured on while nobody asks the test list."""

from __future__ import annotations

import pytest

from factordiff.arc.splits import FIT, HELD, VALIDATION
from factordiff.errors import InvalidInput
from factordiff.worlds.arc_lists import ROUNDS, SIZES, arc_list
from factordiff.worlds.arc_pairs import ArcPair
from factordiff.worlds.catalogue import compare_world
from factordiff.worlds.mosaic.world import Mosaic


@pytest.mark.parametrize("split", sorted(SIZES))
def test_lists_have_their_sizes(split: str) -> None:
    assert len(arc_list(split)) == SIZES[split]


def test_no_instance_is_fitted_on_and_measured() -> None:
    fit, held, validation = (arc_list(split) for split in ("fit", "held", "validation"))
    assert set(fit.numbers.tolist()) == set(FIT)
    assert set(held.numbers.tolist()) == set(HELD)
    assert set(FIT) | set(HELD) == set(VALIDATION)
    fitted, measured = set(fit.queries.tolist()), set(held.queries.tolist())
    assert fitted.isdisjoint(measured)
    assert fitted | measured == set(validation.queries.tolist())


def test_held_queries_come_with_other_demonstrations_each_round() -> None:
    held = arc_list("held")
    once = len(held) // ROUNDS
    assert held.queries[:once].equal(held.queries[once : 2 * once])
    assert not held.frames[:once].equal(held.frames[once : 2 * once])


def test_mosaics_are_made_of_their_own_side() -> None:
    fit, held = Mosaic().queries("fit", 40), Mosaic().queries("held", 40)
    assert arc_list("fit").numbers[fit.made_of.flatten()].max() < HELD.start  # type: ignore[union-attr]
    assert arc_list("held").numbers[held.made_of.flatten()].min() >= HELD.start  # type: ignore[union-attr]
    assert not fit.x_0.equal(held.x_0)


@pytest.mark.parametrize("split", ["validation", "fit"])
def test_a_fitted_row_is_not_measured_on_what_it_is_fitted_on(split: str) -> None:
    with pytest.raises(InvalidInput, match=r"fitted:mixture is fitted on .* --split test or held"):
        compare_world(ArcPair("arc-col+occ"), "alone,fitted:mixture", split=split, limit=2)


def test_rows_measured_on_held_are_fitted_on_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    queries = ArcPair.queries

    def noted(self: ArcPair, split: str, limit: int | None = None) -> object:
        asked.append(split)
        return queries(self, split, limit)

    monkeypatch.setattr(ArcPair, "queries", noted)
    compare_world(ArcPair("arc-col+occ"), "fitted:routing", split="held", limit=1, validation=2, budget=2)
    assert asked == ["held", "fit"]
