"""Verdicts from hand-made figures."""

from __future__ import annotations

import numpy as np
import pytest

from factordiff.evaluation.statistics import Contest, Estimate, contest, difference, mcnemar
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
    rivals = [(name, Contest(Estimate(value, 0.0, 0.0), 1.0, 5)) for name, value in (("a", 0.1), ("b", -0.1))]
    assert strongest(rivals)[0] == "b"


def test_a_contest_has_the_paired_difference_and_mcnemar_beside_it():
    one = np.array([True] * 9 + [False] + [True] * 10)
    other = np.array([False] * 9 + [True] + [True] * 10)
    tasks = np.repeat(np.arange(4), 5)
    found = contest(one, other, tasks)
    assert found.gain == difference(one, other, tasks)
    assert found.gain.value == pytest.approx(8 / 20)
    assert found.p_value == mcnemar(one, other) == pytest.approx(2 * 11 / 1024)
    assert found.points().startswith("+40.00 points [")
    assert found.points().endswith("McNemar p = 0.0215, 20 queries")
