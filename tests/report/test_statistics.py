"""Intervals over tasks, against a loop that draws tasks one by one and against theory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from factordiff.errors import InvalidInput
from factordiff.report.statistics import difference, drawn_means, mean, share, times_drawn
from factordiff.streams import Purpose, integers, uniform


def simulated(rates: np.ndarray, queries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    u = uniform(seed, torch.arange(len(rates))[:, None], torch.arange(queries)[None, :]).numpy()
    right = u < rates[:, None]
    return right.ravel(), np.repeat(np.arange(len(rates)), queries)


def one_by_one(values: np.ndarray, tasks: np.ndarray, seed: int, rounds: int) -> list[float]:
    """Every round's mean, slowly: draw as many tasks as there are, put all their queries in a heap, take the mean."""
    names = sorted(set(tasks.tolist()))
    means = []
    for round_ in range(rounds):
        heap: list[float] = []
        for slot in range(len(names)):
            drawn = names[int(integers(len(names), seed, Purpose.BOOTSTRAP, round_, slot, 0))]
            heap += [float(value) for value, task in zip(values, tasks, strict=True) if task == drawn]
        means.append(sum(heap) / len(heap))
    return means


def test_tasks_are_drawn_and_keep_all_their_queries():
    values = np.array([1, 0, 0, 1, 1, -1, 1, 0, 1, 1])
    tasks = np.array(["b", "a", "a", "c", "c", "d", "b", "a", "e", "c"])  # of unequal size, in any order
    assert drawn_means(values, tasks, 7, 40) == pytest.approx(one_by_one(values, tasks, 7, 40))


def test_both_sides_of_a_difference_get_the_same_tasks():
    one, tasks = simulated(np.linspace(0.3, 0.9, 12), 5, seed=1)
    other, _ = simulated(np.linspace(0.9, 0.3, 12), 5, seed=2)
    gain = one.astype(int) - other.astype(int)
    apart = drawn_means(one, tasks) - drawn_means(other, tasks)
    assert drawn_means(gain, tasks) == pytest.approx(apart)
    assert difference(one, other, tasks) == mean(gain, tasks, (-1.0, 1.0))


def test_the_interval_holds_the_estimate_and_is_as_wide_as_theory_says():
    right, tasks = simulated(np.linspace(0.5, 1.0, 100), 50, seed=3)
    estimate = share(right, tasks)
    assert estimate.value == pytest.approx(right.mean())
    assert estimate.low < estimate.value < estimate.high
    # The variance of the observed shares has the queries' scatter in it; 1.984 is Student's t with 99 degrees.
    error = right.reshape(100, 50).mean(1).std(ddof=1) / np.sqrt(100)
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.984 * error, rel=0.03)


def test_more_queries_of_the_same_tasks_do_not_narrow_it_beyond_the_tasks():
    right, tasks = simulated(np.linspace(0.0, 1.0, 40), 25, seed=4)
    twice = share(np.tile(right, 2), np.tile(tasks, 2))
    assert twice == share(right, tasks)


def test_tasks_that_all_fail_leave_room_for_some_that_do_not():
    tasks = np.repeat(np.arange(60), 3)
    none, all_ = share(np.zeros(180, dtype=bool), tasks), share(np.ones(180, dtype=bool), tasks)
    assert (none.value, none.low, all_.value, all_.high) == (0.0, 0.0, 1.0, 1.0)
    exact = stats.binomtest(0, 60).proportion_ci(0.95, "exact")  # Clopper and Pearson, a task being a trial
    assert none.high == pytest.approx(exact.high)
    assert all_.low == pytest.approx(1 - exact.high)
    assert share(np.zeros(3, dtype=bool), np.zeros(3)).high == 1.0  # one task alone says nothing of others


def test_a_paired_difference_is_sharper_than_two_shares():
    base, tasks = simulated(np.linspace(0.3, 0.9, 60), 40, seed=1)
    better = base.copy()
    better[np.flatnonzero(~base)[::10]] = True
    gain = difference(better, base, tasks)
    assert gain.value == pytest.approx(better.mean() - base.mean())
    assert gain.low > 0
    assert gain.high - gain.low < share(base, tasks).high - share(base, tasks).low


def test_no_difference_has_a_point_interval():
    right, tasks = simulated(np.full(10, 0.5), 20, seed=0)
    same = difference(right, right, tasks)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_one_task_says_nothing_of_others():
    right, tasks = np.array([True, True, False, True]), np.zeros(4)
    assert share(right, tasks).percent() == "75.0 % [0.0, 100.0]"
    assert difference(right, ~right, tasks).points() == "+50.00 points [-100.00, +100.00]"


def test_unequal_lengths_are_refused():
    with pytest.raises(
        InvalidInput, match="outcomes: expected equally many, at least one, got 1 and 2 tasks"
    ):
        share(np.array([True]), np.array([0, 1]))
    with pytest.raises(InvalidInput, match="got 2, 1 and 2 tasks"):
        difference(np.array([True, True]), np.array([True]), np.array([0, 1]))
    with pytest.raises(InvalidInput, match="at least one"):
        share(np.array([], dtype=bool), np.array([]))


def test_sums_over_sizes_are_drawn_by_task_together() -> None:
    """With sizes the figure is a ratio of sums, and a round draws both sides of it for the same tasks."""
    sums, sizes = np.array([3.0, 1.0, 0.0, 4.0]), np.array([4.0, 2.0, 1.0, 4.0])
    tasks = np.array(["a", "a", "b", "c"])
    found = mean(sums, tasks, (0.0, 1.0), rounds=200, sizes=sizes)
    assert found.value == 8 / 11
    by_task = {"a": (4.0, 6.0), "b": (0.0, 1.0), "c": (4.0, 4.0)}
    slow = []
    for times in times_drawn(3, 0, 200):
        drawn = list(zip(times, by_task.values(), strict=True))
        slow.append(sum(n * a for n, (a, _) in drawn) / sum(n * b for n, (_, b) in drawn))
    np.testing.assert_allclose(drawn_means(sums, tasks, 0, 200, sizes), slow)
    assert found.low < found.value < found.high
