"""What another decoding does to the answers: paired with those of the loop, over all queries and task by task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factordiff.report.paired import mcnemar

DIFFERENCE = 0.0015  # of exact accuracy, either way
SIGNIFICANT = 0.05  # of McNemar's test
DROP = 0.03  # of any one task
ROUNDING = 1e-9  # shares are quotients: three of a hundred is a little more than 0.03


@dataclass(frozen=True)
class Quality:
    """Right answers of one decoding beside those of another, as shares."""

    exact: float
    exact_of_the_loop: float
    mcnemar_p: float
    largest_drop: float  # of a task

    @classmethod
    def of(cls, ours: np.ndarray, loop: np.ndarray, tasks: np.ndarray) -> Quality:
        """From what was right, query by query."""
        drops = [float(loop[tasks == task].mean() - ours[tasks == task].mean()) for task in np.unique(tasks)]
        return cls(float(ours.mean()), float(loop.mean()), mcnemar(ours, loop), max(drops))

    @property
    def equal(self) -> bool:
        """Equal quality: hardly another accuracy, no difference that a test sees, and no task that pays for it."""
        return self.within(1.0)

    def within(self, share: float) -> bool:
        """Equal quality with only this share of the tolerances used."""
        return (
            abs(self.exact - self.exact_of_the_loop) <= share * DIFFERENCE + ROUNDING
            and self.mcnemar_p > SIGNIFICANT
            and self.largest_drop <= share * DROP + ROUNDING
        )
