"""How right an answer is, as ARC asks: one of the attempts has the right shape and all cells right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factordiff.arc.grid import Grid


def grid_right(attempts: Sequence[Grid], truth: Grid) -> bool:
    """Whether one of the attempts is the right grid: its shape and all its cells."""
    return any(np.array_equal(attempt, truth) for attempt in attempts)
