"""A few numbers found by trying: no more trials than allowed, and no grid to be caught in."""

from __future__ import annotations

import math
from typing import Any

import pytest

from factordiff.composition.method import spec
from factordiff.errors import InvalidInput
from factordiff.fitting.report import Score
from factordiff.fitting.search import FITTABLE, fittable, search


def peak(at: float) -> Any:
    """Best where the second expert's temperature is `at`."""

    def score(setting: dict[str, Any]) -> Score:
        _, second = setting.get("temperatures", (1.0, 1.0))
        return Score(1.0 - 0.1 * abs(math.log(second / at)), 0.0)

    return score


@pytest.mark.parametrize("at", [0.01, 0.25, 1.0, 0.7, 300.0])
def test_it_finds_a_peak_wherever_it_is(at: float) -> None:
    coordinates = fittable("temperatures").coordinates(2)
    trials, chosen = search(coordinates, 2, 24, peak(at))
    found = dict(trials[chosen].setting).get("temperatures", (1.0, 1.0))
    assert found[0] == 1.0
    assert abs(math.log(found[1] / at)) < math.log(4) / 8
    assert len(trials) <= 24


@pytest.mark.parametrize("budget", [1, 3, 8])
@pytest.mark.parametrize("what", [what for what in FITTABLE if what != "router"])
def test_every_method_gets_the_same_number_of_trials(what: str, budget: int) -> None:
    seen: list[dict[str, Any]] = []

    def score(setting: dict[str, Any]) -> Score:
        spec(FITTABLE[what].method).check(setting, ["a", "b", "c"])
        seen.append(setting)
        return Score(len(seen) / 100, 0.0)  # always a little better

    trials, chosen = search(fittable(what).coordinates(3), 3, budget, score)
    assert len(trials) == len(seen) == budget
    assert chosen == budget - 1
    assert seen[0] == {}


def test_of_equals_the_first_is_chosen() -> None:
    trials, chosen = search(fittable("weights").coordinates(2), 2, 6, lambda setting: Score(0.5, 0.5))
    assert chosen == 0
    assert len(trials) == 6
    assert len({str(trial.setting) for trial in trials}) == 6


def test_more_cells_right_break_a_tie() -> None:
    def score(setting: dict[str, Any]) -> Score:
        return Score(0.5, setting.get("weights", (1.0, 1.0))[1] / 100)

    trials, chosen = search(fittable("weights").coordinates(2), 2, 4, score)
    assert trials[chosen].setting["weights"][1] > 1


def test_names_and_budgets_that_make_no_sense_are_refused() -> None:
    assert fittable("mixture").what == "weights"
    with pytest.raises(InvalidInput, match="what: expected one of router, temperatures"):
        fittable("luck")
    with pytest.raises(InvalidInput, match="budget: expected a whole number of at least 1, got 0"):
        search([], 2, 0, lambda setting: Score(0, 0))
