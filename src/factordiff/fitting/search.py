"""A few numbers searched by trying: from where nobody set anything, along one number after the other.

Steps that help are taken again, which leaves any grid behind; where none helps they are halved. Every method gets the
same number of trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from factordiff.errors import InvalidInput
from factordiff.fitting.report import Score, Trial

FACTOR = 4.0  # of the first step of a number that is multiplied
NATS = 4.0  # of one that is added to
SMALLEST = 1 / 16  # of the first step: finer is noise


@dataclass(frozen=True)
class Coordinate:
    """One number of a method: an option of its own, or an expert's entry of an option per expert."""

    option: str
    expert: int | None = None
    scale: Literal["factor", "nats"] = "factor"

    def value(self, place: float) -> float:
        """The number at so many steps from where it begins."""
        return FACTOR**place if self.scale == "factor" else NATS * place


@dataclass(frozen=True)
class Fittable:
    """What can be fitted: the method, and its numbers for so many experts, the first expert's left as they are."""

    what: str
    method: str
    options: tuple[str, ...] = ()  # per expert, multiplied
    alone: tuple[str, ...] = ()  # one for all experts, multiplied
    added: tuple[str, ...] = ()  # per expert, added to

    def coordinates(self, experts: int) -> list[Coordinate]:
        """Its numbers, in the order in which they are tried."""
        others = range(1, experts)
        return [
            *(Coordinate(name) for name in self.alone),
            *(Coordinate(name, expert) for name in self.options for expert in others),
            *(Coordinate(name, expert, "nats") for name in self.added for expert in others),
        ]


FITTABLE = {
    one.what: one
    for one in (
        Fittable("router", "learned"),
        Fittable("temperatures", "routing", ("temperatures",)),
        Fittable("exponents", "product", ("beta",)),
        Fittable("weights", "mixture", ("weights",)),
        Fittable("superdiff", "superdiff", alone=("density_temperature",), added=("bias",)),
        Fittable("rne", "rne", ("weights", "beta")),
        Fittable("evidence", "evidence", alone=("evidence_temperature",), added=("bias",)),
    )
}


def fittable(what: str) -> Fittable:
    """What can be fitted under that name, or as the numbers of the method of that name."""
    by_method = {one.method: one for one in FITTABLE.values()}
    found = FITTABLE.get(what) or by_method.get(what)
    if found is None:
        raise InvalidInput(f"what: expected one of {', '.join(FITTABLE)}, got {what!r}")
    return found


def search(
    coordinates: Sequence[Coordinate],
    experts: int,
    budget: int,
    score: Callable[[dict[str, Any]], Score],
    on_trial: Callable[[int, int], None] | None = None,
) -> tuple[list[Trial], int]:
    """Try at most `budget` settings; what was tried, and the place of the best (of equals the first)."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise InvalidInput(f"budget: expected a whole number of at least 1, got {budget!r}")
    trials: list[Trial] = []
    known: dict[tuple[float, ...], Score] = {}

    def tried(place: tuple[float, ...]) -> Score | None:
        if place not in known:
            if len(trials) == budget:
                return None
            setting = as_options(coordinates, place, experts)
            known[place] = score(setting)
            trials.append(Trial(setting, known[place]))
            if on_trial is not None:
                on_trial(len(trials), budget)
        return known[place]

    here = (0.0,) * len(coordinates)
    best, step = tried(here), 1.0
    assert best is not None
    while len(trials) < budget and step >= SMALLEST:
        before = here
        for number in range(len(coordinates)):
            for sign in (1.0, -1.0):
                while True:
                    there = tuple(at + sign * step * (place == number) for place, at in enumerate(here))
                    found = tried(there)
                    if found is None or found.order <= best.order:
                        break
                    here, best = there, found
        if here == before:
            step /= 2
    order = [trial.score.order for trial in trials if trial.score is not None]
    return trials, order.index(max(order))


def as_options(coordinates: Sequence[Coordinate], place: Sequence[float], experts: int) -> dict[str, Any]:
    """A method's options at a place; none where nothing has moved."""
    found: dict[str, Any] = {}
    for coordinate, at in zip(coordinates, place, strict=True):
        if coordinate.expert is None:
            found[coordinate.option] = coordinate.value(at)
            continue
        usual = coordinate.value(0.0)
        each = list(found.get(coordinate.option, (usual,) * experts))
        each[coordinate.expert] = coordinate.value(at)
        found[coordinate.option] = tuple(each)
    return {} if all(at == 0 for at in place) else {k: _rounded(v) for k, v in found.items()}


def _rounded(value: Any) -> Any:
    """Six digits: what a person can read, and a file keeps."""
    if isinstance(value, tuple):
        return tuple(_rounded(number) for number in value)
    return 0.0 if value == 0 else round(value, 5 - math.floor(math.log10(abs(value))))
