"""Uncertainty: bootstrap over tasks with queries inside, and the exact paired test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from factordiff.errors import InvalidInput
from factordiff.streams import Purpose, integers, uniform


@dataclass(frozen=True)
class Estimate:
    """A share or a difference of shares, with its 95 % interval."""

    value: float
    low: float
    high: float

    def percent(self, digits: int = 1) -> str:
        """For people: `93.1 % [92.0, 94.1]`."""
        value, low, high = (100 * number for number in (self.value, self.low, self.high))
        return f"{value:.{digits}f} % [{low:.{digits}f}, {high:.{digits}f}]"


def share(right: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = 2_000) -> Estimate:
    """The share of right outcomes; tasks are drawn with replacement, and queries within each."""
    return difference(right, np.zeros_like(right), tasks, seed, rounds)


def difference(
    one: np.ndarray, other: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = 2_000
) -> Estimate:
    """The paired difference of two shares over the same queries, by the same two-stage bootstrap."""
    import torch

    if not len(one) == len(other) == len(tasks) or len(one) == 0:
        raise InvalidInput(
            f"outcomes: expected equally many, at least one, got {len(one)}, {len(other)} and {len(tasks)} tasks"
        )
    gain = one.astype(np.int64) - other.astype(np.int64)
    names, index = np.unique(tasks, return_inverse=True)
    count = np.bincount(index)
    wins = np.bincount(index[gain > 0], minlength=len(names))
    losses = np.bincount(index[gain < 0], minlength=len(names))
    round_, slot = torch.arange(rounds)[:, None], torch.arange(len(names))[None, :]
    drawn = integers(len(names), seed, Purpose.BOOTSTRAP, round_, slot, 0).numpy()
    u_wins = uniform(seed, Purpose.BOOTSTRAP, round_, slot, 1).numpy()
    u_losses = uniform(seed, Purpose.BOOTSTRAP, round_, slot, 2).numpy()
    # Queries drawn with replacement inside a task: wins are binomial, losses binomial among the rest.
    n, p_win = count[drawn], wins[drawn] / count[drawn]
    new_wins = stats.binom.ppf(u_wins, n, p_win)
    rest = np.maximum(count - wins, 1)
    new_losses = stats.binom.ppf(u_losses, n - new_wins, (losses / rest)[drawn])
    means = (new_wins - new_losses).sum(1) / n.sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(gain.mean()), float(low), float(high))


def mcnemar(one: np.ndarray, other: np.ndarray) -> float:
    """The exact two-sided p-value that two methods err equally often, from the queries where they differ."""
    wins = int((one & ~other).sum())
    losses = int((~one & other).sum())
    return 1.0 if wins + losses == 0 else float(stats.binomtest(wins, wins + losses, 0.5).pvalue)


@dataclass(frozen=True)
class Contest:
    """Two methods on the same queries: the paired difference and McNemar's exact test beside it."""

    gain: Estimate  # one minus other, in shares
    p_value: float
    queries: int

    def points(self) -> str:
        """For people: `+1.20 points [+0.80, +1.63], McNemar p = 0.0001, 24,000 queries`."""
        value, low, high = (100 * number for number in (self.gain.value, self.gain.low, self.gain.high))
        p = "p < 0.0001" if self.p_value < 1e-4 else f"p = {self.p_value:.4f}"
        return f"{value:+.2f} points [{low:+.2f}, {high:+.2f}], McNemar {p}, {self.queries:,} queries"


def contest(
    one: np.ndarray, other: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = 2_000
) -> Contest:
    """The paired difference of two methods' outcomes (bool) over the same queries, with McNemar's test."""
    return Contest(difference(one, other, tasks, seed, rounds), mcnemar(one, other), len(one))
