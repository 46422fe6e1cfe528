"""Exact tests by hand, and what two methods on the same queries are told by."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from factordiff.report.fixed_tasks import difference_here
from factordiff.report.paired import TasksWon, contest, mcnemar
from factordiff.report.statistics import difference

ONE = np.array([True] * 9 + [False] + [True] * 10)
OTHER = np.array([False] * 9 + [True] + [True] * 10)


def test_mcnemar_by_hand():
    # 10 discordant pairs, 9 against 1: 2 * (C(10,0) + C(10,1)) / 2^10
    assert mcnemar(ONE, OTHER) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(ONE, ONE) == 1.0


def test_a_contest_has_both_intervals_and_mcnemar_beside_them():
    tasks = np.repeat(np.arange(4), 5)
    found = contest(ONE, OTHER, tasks)
    assert found.gain == difference(ONE, OTHER, tasks)
    assert found.here == difference_here(ONE, OTHER, tasks)
    assert found.gain.value == pytest.approx(8 / 20)
    assert found.p_value == mcnemar(ONE, OTHER)
    assert found.points().startswith("+40.00 points [")
    assert ", on these tasks [+" in found.points()
    assert found.points().endswith("McNemar p = 0.0215, 20 queries")


def test_a_contest_on_single_queries_has_no_interval_on_these_tasks():
    found = contest(ONE, OTHER, np.arange(20))
    assert found.here is None
    assert "on these tasks" not in found.points()


@pytest.mark.parametrize(("won", "lost"), [(49, 30), (30, 49), (3, 3), (8, 1), (0, 5)])
def test_the_sign_test_counts_every_way_that_is_no_likelier(won, lost):
    tasks = TasksWon(won, lost, 41)
    count = won + lost
    ways = [comb(count, wins) for wins in range(count + 1)]
    assert tasks.p_value == pytest.approx(sum(way for way in ways if way <= ways[won]) / 2**count)


def test_ties_are_counted_and_left_out_of_the_test():
    tasks = TasksWon.of(np.array([0.1, 0.2, 0.0, -0.1, 0.0, 0.0]))
    assert tasks == TasksWon(2, 1, 3)
    assert tasks.p_value == TasksWon(2, 1, 0).p_value == 1.0
    assert TasksWon(0, 0, 4).p_value == 1.0
    assert TasksWon(49, 30, 41).words() == "49 won, 30 lost, 41 tied, sign test p = 0.0422"
