"""From which range of difficulties an attempt draws: as for the shipped data set, or so that large grids come often.

A generator draws most of what it decides (sides, objects, colors) from a part (l, u) of its own range 0..1. Most
sides range up to 30, so a grid of 10x10 needs l near 0.2 and u near 0.3, or much luck.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from factordiff.errors import DataError

# Difficulty (0, u) with u uniform in [0.25, 1]: small grids, but not only small ones.
EASIEST_UPPER_BOUND = 0.25


@dataclass(frozen=True)
class Difficulty:
    """A way to draw (l, u) from an attempt's own random numbers, before the generator draws.

    `stated` names it in manifests; `words` go into the attempt's key, so that two difficulties never share an attempt.
    """

    stated: str
    words: tuple[int, ...]
    draw: Callable[[random.Random], tuple[float, float]]


def _from_zero(rng: random.Random) -> tuple[float, float]:
    return 0.0, rng.uniform(EASIEST_UPPER_BOUND, 1.0)


def _mostly_narrow(rng: random.Random) -> tuple[float, float]:
    """A narrow range finds large grids; the wide one keeps what narrow ranges never give, such as crowded grids."""
    if rng.random() < 0.5:
        return _from_zero(rng)
    return rng.uniform(0.0, 0.2), rng.uniform(0.25, 0.5)


AS_SHIPPED = Difficulty(f"(0, u), u uniform in [{EASIEST_UPPER_BOUND}, 1], drawn first", (), _from_zero)
LARGER = Difficulty(
    f"drawn first: one time in two (0, u), u uniform in [{EASIEST_UPPER_BOUND}, 1]; "
    "else (l, u), l uniform in [0, 0.2], u uniform in [0.25, 0.5]",
    (1,),
    _mostly_narrow,
)


def stated_difficulty(stated: str) -> Difficulty:
    """The difficulty that a manifest states."""
    for difficulty in (AS_SHIPPED, LARGER):
        if difficulty.stated == stated:
            return difficulty
    raise DataError(
        f"difficulty: the manifest states {stated!r}, which this version does not know; "
        "use the version of factordiff that built the file"
    )
