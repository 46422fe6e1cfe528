"""Two methods on the same queries: the paired difference, McNemar's exact test, and the sign test over tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from factordiff.report.fixed_tasks import difference_here
from factordiff.report.statistics import Estimate, difference


def mcnemar(one: np.ndarray, other: np.ndarray) -> float:
    """The exact two-sided p-value that two methods err equally often, from the queries where they differ."""
    return even_odds(int((one & ~other).sum()), int((~one & other).sum()))


def even_odds(wins: int, losses: int) -> float:
    """The exact two-sided p-value of so many wins and losses where either is as likely."""
    return 1.0 if wins + losses == 0 else float(stats.binomtest(wins, wins + losses, 0.5).pvalue)


def p_words(p: float) -> str:
    """For people: `p = 0.0331`."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.4f}"


@dataclass(frozen=True)
class TasksWon:
    """How many tasks a method won, lost and tied; the sign test leaves ties out."""

    won: int
    lost: int
    tied: int

    @classmethod
    def of(cls, gain: np.ndarray) -> TasksWon:
        """From each task's difference."""
        return cls(int((gain > 0).sum()), int((gain < 0).sum()), int((gain == 0).sum()))

    @property
    def p_value(self) -> float:
        """The exact two-sided sign test: that a task with a difference is as likely lost as won."""
        return even_odds(self.won, self.lost)

    def words(self) -> str:
        """For people: `49 won, 30 lost, 41 tied, sign test p = 0.0422`."""
        return f"{self.won} won, {self.lost} lost, {self.tied} tied, sign test {p_words(self.p_value)}"


@dataclass(frozen=True)
class Contest:
    """Two methods on the same queries: the paired difference over tasks, on these tasks, and McNemar's exact test."""

    gain: Estimate  # one minus other, in shares
    here: Estimate | None  # the same on exactly these tasks; None where a task has one query
    p_value: float
    queries: int

    def points(self) -> str:
        """For people: `+1.20 points [+0.80, +1.63], on these tasks [+0.97, +1.44], McNemar p < 0.0001, 600 queries`."""
        kept = ""
        if self.here is not None:
            kept = f", on these tasks [{100 * self.here.low:+.2f}, {100 * self.here.high:+.2f}]"
        return f"{self.gain.points()}{kept}, McNemar {p_words(self.p_value)}, {self.queries:,} queries"


def contest(one: np.ndarray, other: np.ndarray, tasks: np.ndarray, seed: int = 0) -> Contest:
    """The paired difference of two methods' outcomes (bool) over the same queries, with McNemar's test."""
    gain, here = difference(one, other, tasks, seed), difference_here(one, other, tasks, seed)
    return Contest(gain, here, mcnemar(one, other), len(one))
