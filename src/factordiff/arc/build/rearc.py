"""RE-ARC attempts: one call of a task's generator is a pure function of (task, seed, attempt).

The generators come from the package `reasoning-gym`. An attempt draws its own difficulty, runs the generator on
random numbers of its own, and is accepted if both grids fit the canvas. So any attempt can be made anywhere, at
any time, in any order.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from types import FrameType

from factordiff.arc.build.difficulty import AS_SHIPPED, Difficulty
from factordiff.arc.grid import SIDE, Grid, parse_grid
from factordiff.errors import DataError, MissingDependency

GENERATORS = ("reasoning-gym", "0.1.25")
DRAW_LIMIT = 10_000  # accepted attempts drew fewer than 1,000 in a probe of all tasks
CLOCK_LIMIT_S = 60.0  # a safety net: the slowest attempt that ended by itself took well under a second
SKIPPED: frozenset[tuple[str, int, int]] = frozenset()  # (task, seed, attempt) on which the clock fired once

_WORD = (1 << 64) - 1
PURPOSE_INSTANCE = 11  # streams.Purpose.INSTANCE


class _TooManyDraws(Exception):
    """The generator drew more random numbers than an attempt may."""


class _TooSlow(Exception):
    """The clock fired during an attempt."""


@dataclass(frozen=True)
class Attempt:
    """What one call of a generator gave: a pair of grids, or why not, and how many draws it cost.

    A refusal is `generator` (it raised an error), `draws` (it ran away), `size` (a grid exceeds the canvas),
    `grid` (not a grid of colors) or `skipped`.
    """

    draws: int
    pair: tuple[Grid, Grid] | None
    refusal: str = ""


def hash_words(*words: int) -> int:
    """`streams.hash_words` in plain Python, as an unsigned word: for one key a hundred times quicker."""
    bits = 0
    for word in words:
        bits = ((bits ^ (word & _WORD)) + 0x9E3779B97F4A7C15) & _WORD
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _WORD
        bits ^= bits >> 31
    return bits


class CountingRandom(random.Random):
    """Python's own generator that counts its draws and stops past a limit.

    Both `random` and `getrandbits` are overridden: with `random` alone, `random.Random` would switch
    `choice`, `sample` and `shuffle` to another algorithm and so to other numbers.
    """

    def __init__(self, seed: int, limit: int) -> None:
        self.draws = 0
        self.limit = limit
        super().__init__(seed)

    def random(self) -> float:
        """The next number in [0, 1), counted."""
        self._count()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """The next k bits, counted."""
        self._count()
        return super().getrandbits(k)

    def _count(self) -> None:
        self.draws += 1
        if self.draws > self.limit:
            raise _TooManyDraws


@cache
def generators() -> dict[str, Callable[[random.Random, float, float], dict[str, object]]]:
    """Task id -> generator, from the installed package of exactly the version the data set is named after."""
    name, expected = GENERATORS
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        raise MissingDependency(
            f"the RE-ARC generators are in {name}=={expected}, which is not installed; "
            "install factordiff[data] to build data"
        ) from None
    if installed != expected:
        raise MissingDependency(
            f"{name}: expected version {expected}, got {installed}; another version generates other data, "
            "install factordiff[data]"
        )
    from reasoning_gym.arc.rearc_utils import generators as module
    from reasoning_gym.arc.rearc_utils.utils import get_generators

    found: dict[str, Callable[[random.Random, float, float], dict[str, object]]] = get_generators(module)
    return found


def attempt(task: str, seed: int, number: int, difficulty: Difficulty = AS_SHIPPED) -> Attempt:
    """Attempt `number` of a task: its generator called once, on random numbers that belong to this key alone."""
    if (task, seed, number) in SKIPPED:
        return Attempt(0, None, "skipped")
    key = hash_words(PURPOSE_INSTANCE, seed, int(task, 16), number, *difficulty.words)
    rng = CountingRandom(key, DRAW_LIMIT)
    lower, upper = difficulty.draw(rng)
    try:
        made = generators()[task](rng, lower, upper)
    except _TooManyDraws:
        return Attempt(rng.draws, None, "draws")
    except _TooSlow:
        raise DataError(
            f"task {task}, seed {seed}, attempt {number}: the generator ran for more than {CLOCK_LIMIT_S:.0f} s "
            f"and {rng.draws} draws; if it does so again on an idle machine, this key belongs into "
            "factordiff.arc.build.rearc.SKIPPED"
        ) from None
    except Exception:
        # Some generators fail on some of their own choices (an empty range, a set too small to sample from).
        return Attempt(rng.draws, None, "generator")
    return _judge(rng.draws, made)


def _judge(draws: int, made: dict[str, object]) -> Attempt:
    rows = made["input"], made["output"]
    for grid in rows:
        if not isinstance(grid, tuple) or not grid or not isinstance(grid[0], tuple):
            return Attempt(draws, None, "grid")
        if max(len(grid), len(grid[0])) > SIDE:
            return Attempt(draws, None, "size")
    try:
        return Attempt(draws, (parse_grid(rows[0], "input"), parse_grid(rows[1], "output")))
    except DataError:
        return Attempt(draws, None, "grid")


def start_clock() -> None:
    """Let `attempt_by_the_clock` interrupt this process; only its main thread can be interrupted."""

    def fire(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    signal.signal(signal.SIGALRM, fire)


def attempt_by_the_clock(task: str, seed: int, number: int, difficulty: Difficulty = AS_SHIPPED) -> Attempt:
    """The same attempt under the safety net: a generator that neither ends nor draws becomes an error."""
    signal.setitimer(signal.ITIMER_REAL, CLOCK_LIMIT_S)
    try:
        return attempt(task, seed, number, difficulty)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
