"""A few numbers searched by trying: a grid along one number after the other, then finer steps around the best.

A number at the end of its grid makes the grid longer. Every method gets the same number of trials, whoever asks: half
of them go into the grids, as long as that allows. Where they end while the best is still the last of some number,
further ones may be spent beyond that end, and nowhere else.

At last experts' numbers may be moved by next to nothing. Where two experts are sure of different values, a mixture of
equal weights ties, and which value it takes is chance; a weight of 1.001 decides for one of them everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from factordiff.errors import InvalidInput
from factordiff.schema.values import Whole

FACTOR = 4.0  # of the first step of a number that is multiplied
NATS = 4.0  # of one that is added to
SMALLEST = 1 / 16  # of the first step: finer is noise, but for what breaks ties
NEXT_TO_NOTHING = 1 / 1024  # of the first step
LONGEST = 3  # steps of a first grid to either side
FURTHEST = 8.0  # steps: the budget moves no number further

Place = tuple[float, ...]
Setting = dict[str, Any]
Value = Any  # whatever has an order: a number, or a tuple of them


@dataclass(frozen=True)
class Coordinate:
    """One number of a method: an option of its own, or an expert's entry of an option per expert; or a choice."""

    option: str
    expert: int | None = None
    scale: Literal["factor", "nats"] = "factor"
    choices: tuple[Any, ...] = ()  # in place of a number; the first is where it begins

    def value(self, place: float) -> Any:
        """The number at so many steps from where it begins, or the choice of that place."""
        if self.choices:
            return self.choices[int(place)]
        return FACTOR**place if self.scale == "factor" else NATS * place


@dataclass(frozen=True)
class Fittable:
    """What can be fitted: the method, and its numbers for so many experts, the first expert's left as they are."""

    what: str
    method: str
    options: tuple[str, ...] = ()  # per expert, multiplied
    alone: tuple[str, ...] = ()  # one for all experts, multiplied
    added: tuple[str, ...] = ()  # per expert, added to
    sharpens: bool = False  # the first expert's number says how sharp the whole is, which likelihoods notice

    def coordinates(
        self, experts: int, *, likelihood: bool = False, choices: Mapping[str, Sequence[Any]] | None = None
    ) -> list[Coordinate]:
        """Its numbers, in the order in which they are tried, and `choices` of other options among them.

        `likelihood`: whether probabilities are scored, and not the likeliest values alone.
        """
        multiplied = range(0 if likelihood and self.sharpens else 1, experts)
        return [
            *(Coordinate(name) for name in self.alone),
            *(Coordinate(name, choices=tuple(some)) for name, some in (choices or {}).items()),
            *(Coordinate(name, expert) for name in self.options for expert in multiplied),
            *(Coordinate(name, expert, "nats") for name in self.added for expert in range(1, experts)),
        ]


FITTABLE = {
    one.what: one
    for one in (
        Fittable("router", "learned"),
        Fittable("temperatures", "routing", ("temperatures",)),
        Fittable("exponents", "product", ("beta",), sharpens=True),
        Fittable("weights", "mixture", ("weights",)),
        Fittable("superdiff", "superdiff", alone=("density_temperature",), added=("bias",)),
        Fittable("rne", "rne", ("weights", "beta")),
        Fittable("evidence", "evidence", alone=("evidence_temperature",), added=("bias",)),
    )
}


def fittable(what: str) -> Fittable:
    """What can be fitted under that name, or as the numbers of the method of that name."""
    by_method = {one.method: one for one in FITTABLE.values()}
    found = {**by_method, **FITTABLE}.get(what) if isinstance(what, str) else None
    if found is None:
        raise InvalidInput(
            f"what: expected one of {', '.join(FITTABLE)}, or the method whose numbers they are (one of "
            f"{', '.join(by_method)}), got {what!r}"
        )
    return found


def tie_breaks(experts: int) -> int:
    """The trials that break ties: two for each expert but the first, whatever the method."""
    return 2 * (experts - 1)


@dataclass(frozen=True)
class Search:
    """Every setting that was tried, in order, what came of it, and the place of the best (of equals the first).

    `edge`: of some number nothing was tried beyond what is best, because the trials came to an end.
    """

    settings: tuple[Setting, ...]
    values: tuple[Value, ...]
    chosen: int
    edge: bool

    @property
    def best(self) -> Setting:
        """The chosen setting."""
        return self.settings[self.chosen]


def search(
    coordinates: Sequence[Coordinate],
    experts: int,
    budget: int,
    value: Callable[[Setting], Value],
    on_trial: Callable[[int, int], None] | None = None,
    beyond: int = 0,
    ties: int = 0,
) -> Search:
    """Try at most `budget` settings, of which the one with the largest value is chosen.

    If it is then at the end of what was tried of some number, at most `beyond` more are tried past that end, until the
    best has something on either side. At most `ties` more move experts' numbers by next to nothing.
    """
    Whole(1).read(budget, "budget")
    known: dict[Place, Value] = {}
    allowed = budget

    def tried(place: Place) -> Value | None:
        if place not in known:
            if len(known) == allowed:
                return None
            known[place] = value(as_options(coordinates, place, experts))
            if on_trial is not None:
                on_trial(len(known), max(budget, len(known)))
        return known[place]

    here = (0.0,) * len(coordinates)
    tried(here)
    reach, step = _reach(coordinates, budget), 1.0
    while len(known) < budget and step >= SMALLEST:
        before = here
        for number, coordinate in enumerate(coordinates):
            here = _along(tried, here, number, coordinate, step, reach)
        reach = 1
        if here == before:
            step /= 2
    allowed = len(known) + beyond
    while (past := _past_the_ends(coordinates, list(known), _best(known))) and tried(past[0]) is not None:
        pass
    edge = bool(_ends(coordinates, list(known), _best(known)))
    allowed = len(known) + ties
    for number in (number for number, one in enumerate(coordinates) if one.expert is not None):
        here = list(known)[_best(known)]
        for at in (here[number] + NEXT_TO_NOTHING, here[number] - NEXT_TO_NOTHING):
            if abs(at) <= FURTHEST:
                tried((*here[:number], at, *here[number + 1 :]))
    settings = tuple(as_options(coordinates, place, experts) for place in known)
    return Search(settings, tuple(known.values()), _best(known), edge)


def _best(known: Mapping[Place, Value]) -> int:
    """Which trial has the largest value; of equals the first."""
    values = list(known.values())
    return values.index(max(values))


def _reach(coordinates: Sequence[Coordinate], budget: int) -> int:
    """How many steps to either side a first grid takes: about half of the trials in all."""
    numbers = sum(not one.choices for one in coordinates)
    chosen = sum(len(one.choices) - 1 for one in coordinates if one.choices)
    return max(1, min(LONGEST, (budget // 2 - 1 - chosen) // max(1, 2 * numbers)))


def _along(
    tried: Callable[[Place], Value | None],
    here: Place,
    number: int,
    coordinate: Coordinate,
    step: float,
    reach: int,
) -> Place:
    """The best place on the line of one number, or of all its choices; of equals where it was."""

    def at(place: float) -> Place:
        return (*here[:number], place, *here[number + 1 :])

    line: dict[float, Value] = {here[number]: tried(here)}

    def add(place: float) -> bool:
        found = tried(at(place))
        if found is not None:
            line[place] = found
        return found is not None

    if coordinate.choices:
        if step == 1.0:  # they are not refined
            all(add(float(place)) for place in range(len(coordinate.choices)))
        return at(max(line, key=line.__getitem__))
    away = [sign * steps * step for steps in range(1, reach + 1) for sign in (1.0, -1.0)]
    all(add(here[number] + far) for far in away if abs(here[number] + far) <= FURTHEST)
    while True:
        best = max(line, key=line.__getitem__)
        if best not in (min(line), max(line)):
            return at(best)
        beyond = best + step if best == max(line) else best - step
        if abs(beyond) > FURTHEST or not add(beyond):
            return at(best)


def _ends(coordinates: Sequence[Coordinate], places: Sequence[Place], chosen: int) -> list[tuple[int, float]]:
    """The numbers that are the last tried at the chosen place, each with the way that leads past it."""
    found = []
    for number, coordinate in enumerate(coordinates):
        seen, at = [place[number] for place in places], places[chosen][number]
        if not coordinate.choices:
            found += [(number, way) for way, end in ((1.0, max(seen)), (-1.0, min(seen))) if at == end]
    return found


def _past_the_ends(coordinates: Sequence[Coordinate], places: Sequence[Place], chosen: int) -> list[Place]:
    """The places a step past these ends."""
    here = places[chosen]
    return [
        (*here[:number], here[number] + way, *here[number + 1 :])
        for number, way in _ends(coordinates, places, chosen)
    ]


def as_options(coordinates: Sequence[Coordinate], place: Sequence[float], experts: int) -> Setting:
    """A method's options at a place: its choices, and its numbers if any of them has moved."""
    pairs = list(zip(coordinates, place, strict=True))
    found: Setting = {one.option: one.value(at) for one, at in pairs if one.choices}
    if all(at == 0 for one, at in pairs if not one.choices):
        return found
    for coordinate, at in pairs:
        if coordinate.choices:
            continue
        if coordinate.expert is None:
            found[coordinate.option] = _rounded(coordinate.value(at))
            continue
        usual = coordinate.value(0.0)
        each = list(found.get(coordinate.option, (usual,) * experts))
        each[coordinate.expert] = _rounded(coordinate.value(at))
        found[coordinate.option] = tuple(each)
    return found


def _rounded(value: float) -> float:
    """Six digits: what a person can read, and a file keeps."""
    return 0.0 if value == 0 else round(value, 5 - math.floor(math.log10(abs(value))))
