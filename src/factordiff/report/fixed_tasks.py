"""Uncertainty on exactly these tasks: they are kept, and queries are drawn within each (stratified).

Such an interval says what other queries of the same tasks would have given, and nothing about other tasks. It is
narrower than the one over tasks (statistics.py), and what McNemar's test on the queries goes with.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from factordiff.report.statistics import Estimate, gains, not_certain
from factordiff.streams import Purpose, uniform

ROUNDS = 2_000


def share_here(right: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = ROUNDS) -> Estimate | None:
    """The share of right outcomes; None where a task has one query, which tells nothing of its scatter."""
    found = difference_here(right, np.zeros_like(right), tasks, seed, rounds)
    return None if found is None else not_certain(found, len(right))


def difference_here(
    one: np.ndarray, other: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = ROUNDS
) -> Estimate | None:
    """The paired difference of two shares over the same queries; None where a task has one query."""
    gain = gains(one, other, tasks)
    if np.unique(tasks, return_counts=True)[1].min() < 2:
        return None
    low, high = np.quantile(drawn_here(gain, tasks, seed, rounds), [0.025, 0.975])
    return Estimate(float(gain.mean()), float(low), float(high))


def drawn_here(gain: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = ROUNDS) -> np.ndarray:
    """The mean of the gains (1, 0, -1) in each round of queries drawn within their tasks.

    One query fewer is drawn than a task has: the drawn means then scatter as the task's mean does, not by (n - 1) / n
    of that variance (Rao and Wu 1988). Wins are binomial, losses binomial among the rest.
    """
    import torch

    _, index = np.unique(tasks, return_inverse=True)
    count = np.bincount(index)
    wins = np.bincount(index[gain > 0], minlength=len(count))
    losses = np.bincount(index[gain < 0], minlength=len(count))
    vary = np.flatnonzero((wins < count) & (losses < count) & (wins + losses > 0))
    steady = (wins - losses).sum() - (wins - losses)[vary].sum()
    round_, task = torch.arange(rounds)[:, None], torch.from_numpy(vary)[None, :]
    u_wins = uniform(seed, Purpose.BOOTSTRAP, round_, task, 1).numpy()
    u_losses = uniform(seed, Purpose.BOOTSTRAP, round_, task, 2).numpy()
    n, w, lost = count[vary], wins[vary], losses[vary]
    new_wins = stats.binom.ppf(u_wins, n - 1, w / n)
    new_losses = stats.binom.ppf(u_losses, n - 1 - new_wins, lost / (n - w))
    sums: np.ndarray = ((new_wins - new_losses) * (n / (n - 1))).sum(1)
    return np.round((sums + steady) / len(gain), 12) + 0.0  # what cancels is 0, on no side of it
