"""A few numbers found by trying: no more trials than allowed, and no grid to be caught in."""

from __future__ import annotations

import math
from typing import Any

import pytest

from factordiff.composition.method import spec
from factordiff.errors import InvalidInput
from factordiff.fitting.search import FACTOR, FITTABLE, FURTHEST, fittable, search, tie_breaks

BOTH = (1.0, 1.0)  # where a pair of numbers begins


def peak(at: float) -> Any:
    """Best where the second expert's temperature is `at`."""

    def value(setting: dict[str, Any]) -> float:
        _, second = setting.get("temperatures", BOTH)
        return -abs(math.log(second / at))

    return value


@pytest.mark.parametrize("at", [0.01, 0.25, 1.0, 0.7, 300.0])
def test_it_finds_a_peak_wherever_it_is(at: float) -> None:
    found = search(fittable("temperatures").coordinates(2), 2, 24, peak(at))
    first, second = found.best.get("temperatures", BOTH)
    assert first == 1.0
    assert abs(math.log(second / at)) < math.log(4) / 8
    assert len(found.settings) <= 24
    assert not found.edge


def test_a_grid_sees_what_lies_behind_a_plain() -> None:
    def value(setting: dict[str, Any]) -> float:
        return float(setting.get("weights", BOTH)[1] == 1 / 64)  # nothing on the way there is any better

    found = search(fittable("weights").coordinates(2), 2, 24, value)
    assert found.best["weights"] == (1.0, 1 / 64)


def test_a_grid_gets_longer_and_says_where_it_ends() -> None:
    coordinates = fittable("weights").coordinates(2)
    endless = search(coordinates, 2, 24, lambda setting: setting.get("weights", BOTH)[1])
    assert endless.best["weights"][1] == FACTOR**FURTHEST
    assert endless.edge
    short = search(coordinates, 2, 3, lambda setting: setting.get("weights", BOTH)[1])
    assert short.edge  # the trials came to an end
    far = search(coordinates, 2, 24, lambda setting: -abs(setting.get("weights", BOTH)[1] - 4.0**5))
    assert far.best["weights"][1] == 4.0**5
    assert not far.edge


def in_a_window(setting: dict[str, Any]) -> float:
    """What a mixture of two sure experts is like: equal weights tie, and the right one may be a little louder only."""
    ratio = setting.get("weights", BOTH)[1]
    return 0.9 if 1.0 < ratio < 1.06 else 0.6 if ratio == 1.0 else 0.5


def test_ties_are_broken_by_next_to_nothing() -> None:
    coordinates = fittable("weights").coordinates(2)
    assert search(coordinates, 2, 24, in_a_window).best == {}  # no step is that fine
    found = search(coordinates, 2, 24, in_a_window, ties=tie_breaks(2))
    assert found.best == {"weights": (1.0, 1.00135)}
    assert len(found.settings) <= 24 + 2
    assert not found.edge


def test_breaking_ties_takes_as_many_trials_of_every_method_and_leaves_edges() -> None:
    for what in ("weights", "rne", "superdiff"):
        coordinates = fittable(what).coordinates(3)
        plain = search(coordinates, 3, 9, lambda setting: 0.0)
        assert len(search(coordinates, 3, 9, lambda setting: 0.0, ties=4).settings) == len(plain.settings) + 4
    coordinates = fittable("weights").coordinates(2)
    endless = search(coordinates, 2, 24, lambda setting: setting.get("weights", BOTH)[1], ties=2)
    assert endless.best["weights"][1] == FACTOR**FURTHEST
    assert endless.edge


def uphill(setting: dict[str, Any]) -> float:
    """The more the third expert's weight the better, up to 256, and the second's does not matter."""
    third = setting.get("weights", (1.0,) * 3)[2]
    return -abs(math.log(third / 256.0))


def test_trials_past_an_end_are_spent_there_alone() -> None:
    coordinates = fittable("weights").coordinates(3)
    within = search(coordinates, 3, 6, uphill)
    assert (within.best["weights"], within.edge, len(within.settings)) == ((1.0, 1.0, 16.0), True, 6)
    further = search(coordinates, 3, 6, uphill, beyond=3)
    assert further.settings[:6] == within.settings  # the same for everybody, and then past the end
    assert [one["weights"] for one in further.settings[6:]] == [
        (1.0, 1.0, far) for far in (64.0, 256.0, 1024.0)
    ]
    assert (further.best["weights"], further.edge) == ((1.0, 1.0, 256.0), False)
    assert search(coordinates, 3, 6, uphill, beyond=2).edge  # it ends there too


def test_a_number_that_nothing_was_tried_of_gets_both_its_sides() -> None:
    found = search(fittable("weights").coordinates(3), 3, 2, lambda setting: 0.0, beyond=8)
    tried = [one.get("weights", (1.0,) * 3) for one in found.settings]
    assert tried == [(1, 1, 1), (1, 4, 1), (1, 0.25, 1), (1, 1, 4), (1, 1, 0.25)]
    assert not found.edge


def test_no_trial_is_added_where_the_best_has_both_its_sides() -> None:
    coordinates = fittable("temperatures").coordinates(2)
    assert search(coordinates, 2, 12, peak(0.7), beyond=6) == search(coordinates, 2, 12, peak(0.7))


def test_past_an_end_only_the_trials_end_the_search() -> None:
    coordinates = fittable("weights").coordinates(2)
    endless = search(coordinates, 2, 24, lambda setting: setting.get("weights", BOTH)[1], beyond=3)
    assert endless.best["weights"][1] == pytest.approx(FACTOR ** (FURTHEST + 3), rel=1e-5)
    assert endless.edge

    def level_from(setting: dict[str, Any]) -> float:
        return min(setting.get("weights", BOTH)[1], FACTOR**FURTHEST)

    level = search(
        coordinates, 2, 24, level_from, beyond=3
    )  # one trial more shows that more of it is no better
    assert (level.best["weights"][1], level.edge) == (FACTOR**FURTHEST, False)


def test_several_numbers_are_found_one_after_the_other() -> None:
    def value(setting: dict[str, Any]) -> float:
        _, second, third = setting.get("weights", (1.0,) * 3)
        return -abs(math.log(second / 0.3)) - abs(math.log(third / 90.0))

    best = search(fittable("weights").coordinates(3), 3, 40, value).best["weights"]
    assert best[0] == 1.0
    assert abs(math.log(best[1] / 0.3)) < math.log(4) / 4
    assert abs(math.log(best[2] / 90.0)) < math.log(4) / 4


def test_choices_are_tried_among_the_numbers() -> None:
    def value(setting: dict[str, Any]) -> float:
        good = setting["factors"] == "row"
        return good - abs(math.log(setting.get("evidence_temperature", 1.0) / 16.0))

    coordinates = fittable("evidence").coordinates(2, choices={"factors": ("near:2", "whole", "row")})
    found = search(coordinates, 2, 24, value)
    assert found.best["factors"] == "row"
    assert found.best["evidence_temperature"] == 16.0
    assert {setting["factors"] for setting in found.settings} == {"near:2", "whole", "row"}


def test_a_products_sharpness_matters_to_likelihoods_alone() -> None:
    assert [one.expert for one in fittable("product").coordinates(2)] == [1]
    assert [one.expert for one in fittable("product").coordinates(2, likelihood=True)] == [0, 1]
    assert [one.expert for one in fittable("mixture").coordinates(2, likelihood=True)] == [1]


@pytest.mark.parametrize("budget", [1, 3, 8])
@pytest.mark.parametrize("what", [what for what in FITTABLE if what != "router"])
def test_every_method_gets_the_same_number_of_trials(what: str, budget: int) -> None:
    seen: list[dict[str, Any]] = []

    def value(setting: dict[str, Any]) -> float:
        spec(FITTABLE[what].method).check(setting, ["a", "b", "c"])
        seen.append(setting)
        return float(len(seen))  # always a little better

    found = search(fittable(what).coordinates(3), 3, budget, value)
    assert list(found.settings) == seen
    assert len(seen) == budget
    assert found.chosen == budget - 1


def test_of_equals_the_first_is_chosen() -> None:
    found = search(fittable("weights").coordinates(2), 2, 6, lambda setting: 0.5)
    assert found.chosen == 0
    assert not found.edge
    assert len({str(setting) for setting in found.settings}) == 6


def test_a_tie_is_broken_by_what_comes_after() -> None:
    def value(setting: dict[str, Any]) -> tuple[float, float]:
        return 0.5, setting.get("weights", BOTH)[1]

    assert search(fittable("weights").coordinates(2), 2, 4, value).best["weights"][1] > 1


def test_names_and_budgets_that_make_no_sense_are_refused() -> None:
    assert fittable("mixture").what == "weights"
    with pytest.raises(InvalidInput, match="what: expected one of router, temperatures"):
        fittable("luck")
    with pytest.raises(InvalidInput, match="budget: expected a whole number of at least 1, got 0"):
        search([], 2, 0, lambda setting: 0.0)
