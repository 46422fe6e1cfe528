"""Intervals and tests against hand-made and simulated truths."""

from __future__ import annotations

import numpy as np
import pytest

from factordiff.errors import InvalidInput
from factordiff.evaluation.statistics import difference, mcnemar, share
from factordiff.streams import uniform


def simulated(rates: np.ndarray, queries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    import torch

    u = uniform(seed, torch.arange(len(rates))[:, None], torch.arange(queries)[None, :]).numpy()
    right = u < rates[:, None]
    return right.ravel(), np.repeat(np.arange(len(rates)), queries)


def test_the_interval_holds_the_estimate_and_is_as_wide_as_theory_says():
    rates = np.linspace(0.5, 1.0, 100)
    right, tasks = simulated(rates, 50, seed=3)
    estimate = share(right, tasks)
    assert estimate.value == pytest.approx(right.mean())
    assert estimate.low < estimate.value < estimate.high
    # Two stages: variance of the task rates plus the binomial variance inside, over the number of tasks.
    observed = right.reshape(100, 50).mean(1)
    error = np.sqrt((observed.var() + (observed * (1 - observed)).mean() / 50) / 100)
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.96 * error, rel=0.08)


def test_the_interval_covers_the_truth_about_95_times_in_100():
    truth, covered, trials = 0.8, 0, 120
    for trial in range(trials):
        right, tasks = simulated(np.full(40, truth), 25, seed=100 + trial)
        estimate = share(right, tasks, seed=trial, rounds=300)
        covered += estimate.low <= truth <= estimate.high
    # Task rates are equal here, so the two-stage interval is conservative, never narrow.
    assert covered >= 0.95 * trials - 2 * np.sqrt(trials * 0.95 * 0.05)


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


def test_mcnemar_by_hand():
    one = np.array([True] * 9 + [False] * 1 + [True] * 5)
    other = np.array([False] * 9 + [True] * 1 + [True] * 5)
    # 10 discordant pairs, 9 against 1: 2 * (C(10,0) + C(10,1)) / 2^10
    assert mcnemar(one, other) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(one, one) == 1.0


def test_unequal_lengths_are_refused():
    with pytest.raises(InvalidInput, match="outcomes"):
        share(np.array([True]), np.array([0, 1]))
