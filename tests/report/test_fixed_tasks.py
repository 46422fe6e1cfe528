"""Intervals on exactly these tasks, against an enumeration of everything that could be drawn."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from factordiff.report.fixed_tasks import difference_here, drawn_here, share_here
from factordiff.report.statistics import share
from tests.report.test_statistics import simulated


def everything(gains: dict[str, list[int]]) -> Counter[float]:
    """Each mean with its probability: from every task one query fewer than it has, each as likely, with replacement."""
    total = sum(map(len, gains.values()))
    law: Counter[float] = Counter()
    within = [list(product(queries, repeat=len(queries) - 1)) for queries in gains.values()]
    for drawn in product(*within):
        weighted = sum((len(one) + 1) * sum(one) / len(one) for one in drawn)  # a task weighs what it has
        law[round(weighted / total, 9)] += 1 / np.prod([len(one) for one in within])
    return law


def test_queries_are_drawn_within_their_tasks():
    gains = {"a": [1, 0, -1], "b": [1, 1, 0, 0], "c": [-1, -1], "d": [1, 1, 1]}
    tasks = np.array([name for name, queries in gains.items() for _ in queries])
    law = everything(gains)
    drawn = drawn_here(np.concatenate(list(gains.values())), tasks, seed=5, rounds=40_000)
    found = Counter(np.round(drawn, 9).tolist())
    assert set(found) <= set(law)
    assert 0.5 * sum(abs(found[mean] / 40_000 - law[mean]) for mean in law) < 0.02


def test_it_is_as_wide_as_the_scatter_within_tasks():
    right, tasks = simulated(np.linspace(0.5, 1.0, 100), 10, seed=3)
    here, over = share_here(right, tasks), share(right, tasks)
    within = right.reshape(100, 10)
    error = np.sqrt((within.var(1, ddof=1) / 10).mean() / 100)
    assert here is not None
    assert here.value == over.value
    assert (here.high - here.low) / 2 == pytest.approx(1.96 * error, rel=0.05)
    assert here.high - here.low < over.high - over.low


def test_sure_tasks_have_no_scatter():
    tasks = np.repeat(np.arange(4), 3)
    here = difference_here(tasks < 1, tasks > 2, tasks)
    assert here is not None
    assert (here.value, here.low, here.high) == (0, 0, 0)


def test_none_right_or_all_right_is_not_certain():
    """As of a share over tasks: so many queries would show none less than once in 40 times, were more of them right."""
    tasks = np.repeat(np.arange(4), [3, 3, 2, 2])
    none, full = (share_here(np.full(10, right), tasks) for right in (False, True))
    assert none is not None
    assert full is not None
    assert (none.value, none.low) == (0, 0)
    assert (1 - none.high) ** 10 == pytest.approx(0.025)
    assert (full.low, full.value, full.high) == (1 - none.high, 1, 1)


def test_one_query_of_a_task_says_nothing_of_its_scatter():
    assert share_here(np.array([True, False, True]), np.array([0, 0, 1])) is None


def test_what_cancels_is_nothing():
    """Weights such as 7/6 leave rounding behind, which is no difference on either side."""
    drawn = drawn_here(np.tile([1, -1, 0, 0, 0, 0, 0], 6), np.repeat(np.arange(6), 7))
    level = np.abs(drawn) < 1e-6
    assert level.any()
    assert (drawn[level] == 0).all()
    assert not np.signbit(drawn[level]).any()
