"""Verdicts from hand-made figures."""

from __future__ import annotations

import pytest

from factordiff.evaluation.paired import Contest
from factordiff.evaluation.statistics import Estimate
from factordiff.evaluation.verdicts import above, not_worse, strongest, together


@pytest.mark.parametrize(
    ("low", "high", "judged"),
    [(0.001, 0.01, "confirmed"), (-0.001, 0.01, "undecided here"), (-0.02, -0.001, "not confirmed")],
)
def test_a_gain_is_confirmed_when_its_whole_interval_is_above(low, high, judged):
    assert above(Estimate((low + high) / 2, low, high)) == judged


def test_non_inferiority_allows_three_tenths_of_a_point():
    assert not_worse(Estimate(-0.001, -0.0029, 0.001)) == "confirmed"
    assert not_worse(Estimate(-0.001, -0.0031, 0.001)) == "undecided here"
    assert not_worse(Estimate(-0.01, -0.02, -0.0031)) == "not confirmed"
    assert not_worse(Estimate(0.0, 0.0, 0.0)) == "confirmed"


def test_exactly_the_same_is_not_better():
    assert above(Estimate(0.0, 0.0, 0.0)) == "not confirmed"


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
