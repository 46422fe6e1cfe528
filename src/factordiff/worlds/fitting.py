"""Numbers per expert that are chosen on validation queries, by the world's own metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from factordiff.errors import InvalidInput
from factordiff.solving.team import Team
from factordiff.worlds.answering import value_of
from factordiff.worlds.setting import Prepared, Setting

FITTED = {"mixture": "weights", "product": "beta", "routing": "temperatures"}
GRID = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0, 50.0)  # of the one ratio of two experts
COARSE = (0.1, 0.3, 1.0, 3.0, 10.0)  # of each number in turn, where there are more
MOST_EXTENSIONS = 4
SWEEPS = 2  # over the numbers, where there are several

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Search:
    """The best numbers that were found, and how many were looked at; `edge`: the grid was too small."""

    numbers: Numbers
    value: float
    runs: int
    edge: bool


def search(value: Callable[[Numbers], float], experts: int, free: tuple[int, ...]) -> Search:
    """Coordinate ascent from all ones over the `free` numbers; `value` is the larger the better.

    A number at the end of its grid makes the grid longer, a few times. With one free number it is the best of the
    grid; with more it is a lower bound of the best.
    """
    known: dict[Numbers, float] = {}

    def of(numbers: Numbers) -> float:
        if numbers not in known:
            known[numbers] = value(numbers)
        return known[numbers]

    best: Numbers = (1.0,) * experts
    grid = GRID if len(free) == 1 else COARSE
    edge = False
    for _ in range(1 if len(free) == 1 else SWEEPS):
        before, edge = best, False
        for place in free:
            best, at_edge = _along(of, best, place, grid)
            edge = edge or at_edge
        if best == before:
            break
    return Search(best, of(best), len(known), edge)


def _along(
    of: Callable[[Numbers], float], start: Numbers, place: int, grid: tuple[float, ...]
) -> tuple[Numbers, bool]:
    """The best along one number, times the grid; ties go to what it was."""

    def moved(factor: float) -> Numbers:
        return (*start[:place], round(start[place] * factor, 12), *start[place + 1 :])

    factors = list(grid)
    for _ in range(MOST_EXTENSIONS + 1):
        best = max(sorted(factors, key=lambda factor: factor != 1.0), key=lambda factor: of(moved(factor)))
        if best == min(factors):
            factors.append(best / 3)
        elif best == max(factors):
            factors.append(best * 3)
        else:
            return moved(best), False
    return moved(best), True


def fitted(method: str, setting: Setting) -> Team:
    """The method with the numbers that are best on the validation queries; noted in the setting."""
    if setting.validation is None or not len(setting.validation):
        raise InvalidInput(
            f"methods: 'fitted:{method}' chooses numbers on validation queries, and there are none; "
            "give compare(..., validation=...)"
        )
    queries, option, experts = setting.validation, FITTED[method], len(setting.experts)
    # Only ratios matter, unless sharpness does: a product's, where probabilities are scored, and routing's.
    sharp = method == "product" and setting.metric.mode == "one-pass"
    free = tuple(range(0 if sharp else 1, experts))

    planned = len(GRID) + 1 if len(free) == 1 else SWEEPS * len(COARSE) * len(free)
    done = 0

    def value(numbers: Numbers) -> float:
        nonlocal done
        if setting.watch is not None:  # about so many runs; the grid may get longer
            setting.watch(f"fitting {method}", done, max(planned, done + 1))
        done += 1
        team = setting.team(method, **{option: numbers})
        return setting.metric.main.sign * value_of(Prepared((team,)), queries, setting)

    found = search(value, experts, free)
    if setting.watch is not None:
        setting.watch(f"fitting {method}", done, done)
    setting.notes[f"fitted:{method}"] = {
        option: list(found.numbers),
        "validation": setting.metric.main.sign * found.value,
        "queries": len(queries),
        "runs": found.runs,
        "edge": found.edge,
    }
    return setting.team(method, **{option: found.numbers})
