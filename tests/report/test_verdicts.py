"""Verdicts from hand-made figures, and rules that say what they do."""

from __future__ import annotations

import pytest

from factordiff.report.paired import Contest, TasksWon
from factordiff.report.statistics import Estimate
from factordiff.report.verdicts import (
    BEATS,
    NOT_WORSE,
    WELL_ABOVE,
    WINS_MORE,
    Above,
    strongest,
    together,
    wins_more,
)


@pytest.mark.parametrize(
    ("low", "high", "judged"),
    [(0.001, 0.01, "confirmed"), (-0.001, 0.01, "undecided here"), (-0.02, -0.001, "not confirmed")],
)
def test_a_gain_is_confirmed_when_its_whole_interval_is_above(low, high, judged):
    assert BEATS.judge(Estimate((low + high) / 2, low, high)) == judged


def test_non_inferiority_allows_three_tenths_of_a_point():
    assert NOT_WORSE.judge(Estimate(-0.001, -0.0029, 0.001)) == "confirmed"
    assert NOT_WORSE.judge(Estimate(-0.001, -0.0031, 0.001)) == "undecided here"
    assert NOT_WORSE.judge(Estimate(-0.01, -0.02, -0.0031)) == "not confirmed"
    assert NOT_WORSE.judge(Estimate(0.0, 0.0, 0.0)) == "confirmed"


def test_well_above_is_more_than_a_point():
    assert WELL_ABOVE.judge(Estimate(0.02, 0.0101, 0.03)) == "confirmed"
    assert WELL_ABOVE.judge(Estimate(0.0117, 0.0038, 0.02)) == "undecided here"
    assert WELL_ABOVE.judge(Estimate(0.005, 0.001, 0.009)) == "not confirmed"


def test_more_tasks_are_won_when_the_sign_test_says_so():
    assert wins_more(TasksWon(49, 30, 41)) == "confirmed"
    assert wins_more(TasksWon(48, 31, 41)) == "undecided here"  # p = 0.07
    assert wins_more(TasksWon(30, 49, 41)) == "not confirmed"
    assert wins_more(TasksWon(1, 1, 18)) == "undecided here"
    assert wins_more(TasksWon(0, 0, 20)) == "not confirmed"


def test_a_rule_is_printed_with_the_number_that_it_judges_by():
    assert BEATS.sentence() == (
        "Confirmed: the whole interval of the difference above 0. Not confirmed: wholly below, or exactly level."
    )
    assert "above +1 point (well above: by more than 1 point)." in WELL_ABOVE.sentence()
    assert "of both above -0.3 points (not worse: by less than 0.3 points)." in NOT_WORSE.sentence("both")
    assert "above +12 points." in Above(0.12).sentence()
    assert "sign test (ties left out) p < 0.05" in WINS_MORE


def test_exactly_the_same_is_not_better():
    assert BEATS.judge(Estimate(0.0, 0.0, 0.0)) == "not confirmed"


def test_a_claim_of_several_parts():
    assert together(["confirmed", "confirmed"]) == "confirmed"
    assert together(["confirmed", "undecided here"]) == "undecided here"
    assert together(["undecided here", "not confirmed", "confirmed"]) == "not confirmed"
    assert together([]) == "undecided here"


def test_the_strongest_rival_is_the_one_with_the_smallest_gain():
    rivals = [
        (name, Contest(Estimate(value, 0.0, 0.0), None, 1.0, 5)) for name, value in (("a", 0.1), ("b", -0.1))
    ]
    assert strongest(rivals)[0] == "b"
