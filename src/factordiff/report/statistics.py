"""Uncertainty over tasks: tasks are drawn with replacement and keep their queries (a cluster bootstrap).

The answers of one task are alike, so tasks are what was sampled, and an interval over them speaks of tasks like these.
How much a task's few queries scatter is part of how far the tasks' shares lie apart; to draw queries again inside the
drawn tasks would count it twice. What these very tasks say, and nothing about others, is in fixed_tasks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

from factordiff.errors import InvalidInput
from factordiff.streams import Purpose, integers

ROUNDS = 10_000
LEVEL = 0.95


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

    def points(self) -> str:
        """For people: `+1.20 points [+0.80, +1.63]`."""
        value, low, high = (100 * number for number in (self.value, self.low, self.high))
        return f"{value:+.2f} points [{low:+.2f}, {high:+.2f}]"


def share(right: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = ROUNDS) -> Estimate:
    """The share of right outcomes."""
    found = mean(right.astype(np.int64), tasks, (0.0, 1.0), seed, rounds)
    return not_certain(found, len(np.unique(tasks)))


def not_certain(share: Estimate, count: int) -> Estimate:
    """The estimate of a share, from what was drawn of so many tasks (or queries, where tasks are kept).

    Where none is right, drawing them again shows nothing else; but were more than `most` of them right, so many would
    show none less than once in 40 times. Likewise where all are right. One alone says nothing of others as it is.
    """
    if count == 1 or share.value not in (0.0, 1.0):
        return share
    most = float(1 - ((1 - LEVEL) / 2) ** (1 / count))
    if share.value == 0:
        return Estimate(0.0, 0.0, max(share.high, most))
    return Estimate(1.0, min(share.low, 1 - most), 1.0)


def difference(
    one: np.ndarray, other: np.ndarray, tasks: np.ndarray, seed: int = 0, rounds: int = ROUNDS
) -> Estimate:
    """The paired difference of two shares over the same queries: both sides get the same drawn tasks."""
    return mean(gains(one, other, tasks), tasks, (-1.0, 1.0), seed, rounds)


def gains(one: np.ndarray, other: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """What each query adds to a paired difference: 1, 0 or -1."""
    check(len(one), len(other), len(tasks))
    return one.astype(np.int64) - other.astype(np.int64)


def mean(
    values: np.ndarray,
    tasks: np.ndarray,
    bounds: tuple[float, float],
    seed: int = 0,
    rounds: int = ROUNDS,
    sizes: np.ndarray | None = None,
) -> Estimate:
    """The mean of the values with its interval over tasks; `bounds` are the least and the most a mean can be.

    With `sizes` a value is a sum over so many things, and the mean is over those: all values over all sizes.
    Percentiles of the drawn means, a little further out than 2.5 and 97.5 %: with K tasks the drawn means scatter by
    (K - 1) / K of the variance, which itself is estimated, hence Student's t (Hesterberg 2015, section 5.2). One task
    alone says nothing of others: its interval is all that can be.
    """
    check(len(values), len(tasks))
    count = len(np.unique(tasks))
    found = float(values.mean() if sizes is None else values.sum() / sizes.sum())
    if count == 1:
        return Estimate(found, *bounds)
    drawn = drawn_means(values, tasks, seed, rounds, sizes)
    outside = stats.norm.cdf(-np.sqrt(count / (count - 1)) * stats.t.ppf((1 + LEVEL) / 2, count - 1))
    low, high = np.quantile(drawn, [outside, 1 - outside])
    return Estimate(found, float(low), float(high))


def drawn_means(
    values: np.ndarray,
    tasks: np.ndarray,
    seed: int = 0,
    rounds: int = ROUNDS,
    sizes: np.ndarray | None = None,
) -> np.ndarray:
    """The mean of the values in each round of drawn tasks; every task must have some size."""
    names, index = np.unique(tasks, return_inverse=True)
    times = times_drawn(len(names), seed, rounds)
    return (times @ np.bincount(index, weights=values)) / (times @ np.bincount(index, weights=sizes))


@lru_cache(maxsize=4)
def times_drawn(tasks: int, seed: int, rounds: int) -> np.ndarray:
    """How often each task is drawn (rounds x tasks): the same for everything that is held against each other."""
    import torch

    round_, slot = torch.arange(rounds)[:, None], torch.arange(tasks)[None, :]
    drawn = integers(tasks, seed, Purpose.BOOTSTRAP, round_, slot, 0)
    flat = (round_ * tasks + drawn).ravel().numpy()
    times = np.bincount(flat, minlength=rounds * tasks).reshape(rounds, tasks).astype(np.float64)
    times.setflags(write=False)
    return times


def check(*lengths: int) -> None:
    """Refuse outcomes that do not belong to each other, the last being those of the tasks."""
    if len(set(lengths)) > 1 or lengths[0] == 0:
        raise InvalidInput(
            f"outcomes: expected equally many, at least one, got {', '.join(map(str, lengths[:-1]))} and "
            f"{lengths[-1]} tasks"
        )
