"""The shape of an answer, inferred from the demonstrations, so that a canvas becomes a grid.

Height and width are inferred apart, each by the first rule that every demonstration obeys; the order of the rules
was chosen on the validation split. A rule whose answer would cut off something that the canvas shows is passed
over; if none is left, what was predicted decides, up to its last row or column that is not background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from factordiff.arc.grid import SIDE, Canvas, Grid, Shape, from_canvas
from factordiff.errors import InvalidInput

Demonstration = tuple[Shape, Shape]
# A rule maps (demonstrations, query, axis) to the answer's length along that axis, or to None if it does not hold.
Rule = Callable[[Sequence[Demonstration], Shape, int], int | None]


@dataclass(frozen=True)
class InferredShape:
    """A shape and the rules, one per axis, that gave its height and width."""

    shape: Shape
    rules: tuple[str, str]


def _same(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """As long as the input."""
    return query[axis] if all(given[axis] == answer[axis] for given, answer in shown) else None


def _square(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """The input once for each of its cells."""
    return query[axis] ** 2 if all(given[axis] ** 2 == answer[axis] for given, answer in shown) else None


def _multiple(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """A fixed number of times the input."""
    factor = _quotient({(answer[axis], given[axis]) for given, answer in shown})
    return factor * query[axis] if factor else None


def _fraction(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """A fixed part of the input."""
    divisor = _quotient({(given[axis], answer[axis]) for given, answer in shown})
    return query[axis] // divisor if divisor and query[axis] % divisor == 0 else None


def _swapped(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """As long as the input's other side."""
    return query[1 - axis] if all(given[1 - axis] == answer[axis] for given, answer in shown) else None


def _panels(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """One of a fixed number of panels with a line between them: input + 1 = panels * (output + 1)."""
    panels = _quotient({(given[axis] + 1, answer[axis] + 1) for given, answer in shown})
    return (query[axis] + 1) // panels - 1 if panels and (query[axis] + 1) % panels == 0 else None


def _constant(shown: Sequence[Demonstration], query: Shape, axis: int) -> int | None:
    """Always the same."""
    lengths = {answer[axis] for _, answer in shown}
    return lengths.pop() if len(lengths) == 1 else None


def _quotient(pairs: set[tuple[int, int]]) -> int | None:
    """The whole number that every first is times its second, if there is one."""
    quotients = {divmod(first, second) for first, second in pairs}
    quotient, rest = next(iter(quotients))
    return quotient if len(quotients) == 1 and rest == 0 else None


RULES: dict[str, Rule] = {
    "same": _same,
    "square": _square,
    "multiple": _multiple,
    "fraction": _fraction,
    "swapped": _swapped,
    "panels": _panels,
    "constant": _constant,
}


def infer_shape(demonstrations: Sequence[Demonstration], query: Shape, canvas: Canvas) -> InferredShape:
    """The shape of the answer on this canvas, given the shapes of the demonstrations and of the query.

    >>> infer_shape([((2, 2), (4, 4)), ((3, 3), (6, 6))], (2, 4), np.zeros(100, np.uint8))
    InferredShape(shape=(4, 8), rules=('multiple', 'multiple'))
    """
    if not demonstrations:
        raise InvalidInput("demonstrations: expected at least one, got none; they tell the answer's shape")
    height, row_rule = _infer_side(demonstrations, query, 0, canvas)
    width, column_rule = _infer_side(demonstrations, query, 1, canvas)
    return InferredShape((height, width), (row_rule, column_rule))


def _infer_side(shown: Sequence[Demonstration], query: Shape, axis: int, canvas: Canvas) -> tuple[int, str]:
    used = np.flatnonzero(canvas.reshape(SIDE, SIDE).any(axis=1 - axis))
    least = int(used[-1]) + 1 if len(used) else 1
    for name, rule in RULES.items():
        length = rule(shown, query, axis)
        if length is not None and least <= length <= SIDE:
            return length, name
    return least, "box"


def answer_grid(canvas: Canvas, demonstrations: Sequence[tuple[Grid, Grid]], query: Grid) -> Grid:
    """The canvas cut to the inferred shape: an ARC answer."""
    shapes = [(_shape(given), _shape(answer)) for given, answer in demonstrations]
    return from_canvas(canvas, infer_shape(shapes, _shape(query), canvas).shape)


def _shape(grid: Grid) -> Shape:
    return grid.shape[0], grid.shape[1]
