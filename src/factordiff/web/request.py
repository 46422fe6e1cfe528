"""What a client may ask: JSON becomes a checked request, or a sentence about the first thing that is wrong."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from factordiff.arc.grid import COLORS, SIDE, to_canvas
from factordiff.arc.task import Task, parse_task
from factordiff.composition.factor_names import NAMES
from factordiff.composition.method import spec, specs
from factordiff.errors import DataError, InvalidInput
from factordiff.web.limits import API_VERSION, Limits

RULES = ("fast", "exact", "confidence", "ancestral", "margin", "entropy", "product", "frechet")
FACTORS = r"pixel|row|column|component|whole|block:([1-9]|10)x([1-9]|10)|near:([1-9]|10)"
COUNTS = ("particles", "runs")
LARGEST_SEED = 2**53 - 1  # the largest whole number that JavaScript keeps


@dataclass(frozen=True)
class Reveal:
    """Which cells are revealed next: a rule by name and what it takes."""

    rule: str
    steps: int  # confidence, ancestral
    threshold: float  # margin, product, frechet
    gamma: float  # entropy


@dataclass(frozen=True, eq=False)
class SolveRequest:
    """One test input to be answered, and how."""

    task: Task
    test: int
    experts: tuple[str, ...]
    method: str
    temperatures: tuple[float, ...] | None
    factors: str
    reveal: Reveal
    particles: int
    softness: float
    seed: int
    given: tuple[tuple[int, int], ...]  # (cell of the canvas, color): fixed before the first step
    alternative: bool  # attempt 2 as well
    stream: bool
    detail: bool
    deadline: float


KEYS = {
    "version", "task", "test", "experts", "method", "temperatures", "factors", "reveal", "particles", "softness",
    "seed", "given", "alternative", "stream", "detail", "deadline",
}  # fmt: skip


def parse_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body."""
    try:
        content = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise DataError(f"body: expected UTF-8 text, byte {error.start} is not") from None
    except RecursionError:
        raise DataError("body: nested far too deeply for a request") from None
    except ValueError as error:
        raise DataError(f"body: not valid JSON ({error})") from None
    if not isinstance(content, dict):
        raise DataError(f"body: expected a JSON object, got {_shown(content)}")
    return content


def read_request(content: Mapping[str, Any], known: Collection[str], limits: Limits) -> SolveRequest:
    """The request that a JSON object spells; `known` are the names of the experts there are."""
    unknown = sorted(content.keys() - KEYS)
    if unknown:
        raise InvalidInput(f"body: unknown key {_shown(unknown[0])}; expected {', '.join(sorted(KEYS))}")
    version = content.get("version", API_VERSION)
    if type(version) is not int or version != API_VERSION:
        raise InvalidInput(f"version: this server speaks version {API_VERSION}, got {_shown(version)}")
    task = _task(content.get("task"), limits)
    experts = _experts(content.get("experts", list(known)[:2]), known, limits)
    method = _one_of("method", content.get("method", "routing" if len(experts) > 1 else "single"), specs())
    usual = next((option.default for option in spec(method).options if option.name in COUNTS), 1)
    return SolveRequest(
        task=task,
        test=_whole("test", content.get("test", 0), 0, len(task.tests) - 1),
        experts=experts,
        method=method,
        temperatures=_temperatures(content.get("temperatures"), experts),
        factors=_factors(content.get("factors", spec(method).factors)),
        reveal=_reveal(content.get("reveal", {}), limits),
        particles=_whole("particles", content.get("particles", usual), 1, limits.particles),
        softness=_number("softness", content.get("softness", 0.1), 0.001, 1_000.0),
        seed=_whole("seed", content.get("seed", 0), 0, LARGEST_SEED),
        given=_given(content.get("given")),
        alternative=_flag("alternative", content.get("alternative", False)),
        stream=_flag("stream", content.get("stream", True)),
        detail=_flag("detail", content.get("detail", True)),
        deadline=_number("deadline", content.get("deadline", limits.deadline), 0.01, limits.deadline),
    )


def _task(content: object, limits: Limits) -> Task:
    task = parse_task(content, "yours", "body")
    if len(task.demonstrations) > limits.demonstrations:
        raise InvalidInput(
            f"task, train: {len(task.demonstrations)} pairs, expected at most {limits.demonstrations}"
        )
    if len(task.tests) > limits.tests:
        raise InvalidInput(f"task, test: {len(task.tests)} pairs, expected at most {limits.tests}")
    for name, pairs in (("train", task.demonstrations), ("test", task.tests)):
        for number, pair in enumerate(pairs):
            for part, grid in zip(("input", "output"), pair.grids(), strict=False):
                to_canvas(grid, f"task, {name} pair {number}, {part}")
    return task


def _experts(names: object, known: Collection[str], limits: Limits) -> tuple[str, ...]:
    if not isinstance(names, list) or not 1 <= len(names) <= limits.experts:
        raise InvalidInput(f"experts: expected a list of 1 to {limits.experts} names, got {_shown(names)}")
    for place, name in enumerate(names):
        if not isinstance(name, str) or name not in known:
            raise InvalidInput(f"experts: expected some of {', '.join(known)}, got {_shown(name)}")
        if name in names[:place]:
            raise InvalidInput(f"experts: {name} is named twice")
    return tuple(names)


def _temperatures(given: object, experts: tuple[str, ...]) -> tuple[float, ...] | None:
    """One per expert: the given ones, 1 for the others; None when all are 1."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise InvalidInput(
            f"temperatures: expected an object from expert to temperature, got {_shown(given)}"
        )
    stranger = next((name for name in given if name not in experts), None)
    if stranger is not None:
        raise InvalidInput(f"temperatures: {_shown(stranger)} is not among the experts {', '.join(experts)}")
    numbers = tuple(
        _number(f"temperatures, {name}", given.get(name, 1.0), 0.001, 1_000.0) for name in experts
    )
    return None if all(number == 1.0 for number in numbers) else numbers


def _factors(spelled: object) -> str:
    # A block may not be larger than the canvas, and its digits not so many that reading them takes long.
    if not isinstance(spelled, str) or not re.fullmatch(FACTORS, spelled):
        raise InvalidInput(f"factors: expected one of {', '.join(NAMES)}, got {_shown(spelled)}")
    return spelled


def _reveal(content: object, limits: Limits) -> Reveal:
    if not isinstance(content, dict) or content.keys() - {"rule", "steps", "threshold", "gamma"}:
        raise InvalidInput(
            f"reveal: expected an object with 'rule', 'steps', 'threshold', 'gamma', got {_shown(content)}"
        )
    return Reveal(
        _one_of("reveal, rule", content.get("rule", "fast"), RULES),
        _whole("reveal, steps", content.get("steps", 128), 1, limits.steps),
        _number("reveal, threshold", content.get("threshold", 0.995), 0.0, 1.0),
        _number("reveal, gamma", content.get("gamma", 0.005), 0.0, 1_000.0),
    )


def _given(rows: object) -> tuple[tuple[int, int], ...]:
    """The fixed cells: rows of colors, null where nothing is fixed."""
    if rows is None:
        return ()
    if not isinstance(rows, list) or len(rows) > SIDE:
        raise InvalidInput(f"given: expected at most {SIDE} rows of colors and nulls, got {_shown(rows)}")
    found = []
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) > SIDE:
            raise InvalidInput(
                f"given, row {number}: expected at most {SIDE} colors or nulls, got {_shown(row)}"
            )
        for column, color in enumerate(row):
            if color is None:
                continue
            if type(color) is not int or not 0 <= color < COLORS.size:
                raise InvalidInput(
                    f"given, cell (row {number}, column {column}): expected 0..9 or null, got {_shown(color)}"
                )
            found.append((number * SIDE + column, color))
    return tuple(found)


def _one_of(name: str, given: object, choices: Collection[str]) -> str:
    if not isinstance(given, str) or given not in choices:
        raise InvalidInput(f"{name}: expected one of {', '.join(choices)}, got {_shown(given)}")
    return given


def _whole(name: str, given: object, least: int, most: int) -> int:
    if type(given) is not int or not least <= given <= most:
        raise InvalidInput(f"{name}: expected a whole number from {least} to {most}, got {_shown(given)}")
    return given


def _number(name: str, given: object, least: float, most: float) -> float:
    # bool is an int in Python, and a whole number may be too large to become a float.
    if type(given) not in (int, float) or not least <= given <= most or not math.isfinite(given):  # type: ignore[operator, arg-type]
        raise InvalidInput(f"{name}: expected a number from {least:g} to {most:g}, got {_shown(given)}")
    return float(given)  # type: ignore[arg-type]


def _flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise InvalidInput(f"{name}: expected true or false, got {_shown(given)}")
    return given


def _shown(value: object) -> str:
    """A value as a sentence can show it: never longer than a line."""
    try:
        text = repr(value) if isinstance(value, str) else json.dumps(value)
    except (ValueError, RecursionError):  # whole numbers of thousands of digits
        return "something too large to show"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
