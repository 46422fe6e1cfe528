"""An ARC task: demonstrations and tests, and how JSON spells them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from factordiff.arc.grid import Grid, fits, parse_grid, to_rows
from factordiff.arc.svg import row_svg
from factordiff.errors import DataError


@dataclass(frozen=True, eq=False)
class Pair:
    """An input grid and its output grid; the output of a test may be unknown."""

    input: Grid
    output: Grid | None

    def grids(self) -> Iterator[Grid]:
        """The grids that are known."""
        yield self.input
        if self.output is not None:
            yield self.output

    def __repr__(self) -> str:
        sizes = [f"{grid.shape[0]}x{grid.shape[1]}" for grid in self.grids()]
        return f"Pair({' -> '.join(sizes if len(sizes) == 2 else [*sizes, '?'])})"


@dataclass(frozen=True, eq=False)
class Task:
    """A rule to be inferred from demonstrations and applied to tests."""

    id: str
    demonstrations: tuple[Pair, ...]
    tests: tuple[Pair, ...]

    def fits(self) -> bool:
        """Whether every grid fits the 10x10 canvas."""
        return all(fits(grid) for pair in self.demonstrations + self.tests for grid in pair.grids())

    def __repr__(self) -> str:
        return f"Task({self.id}: {len(self.demonstrations)} demonstrations, {len(self.tests)} tests)"

    def _repr_svg_(self) -> str:
        """The task as a notebook shows it: each input beside its output."""
        panels = []
        for title, pairs in (("shown", self.demonstrations), ("asked", self.tests)):
            for number, pair in enumerate(pairs):
                panels += [
                    (f"{title} {number}" if side == 0 else "", grid) for side, grid in enumerate(pair.grids())
                ]
        return row_svg(panels, cell=10)


def parse_task(content: object, task_id: str, where: str) -> Task:
    """The task that a JSON value spells, or a `DataError` that names file, task, pair and cell."""
    place = f"{where}: task {task_id}"
    parts = {}
    for key in ("train", "test"):
        if not isinstance(content, dict) or key not in content:
            raise DataError(
                f"{place}: expected an object with the keys 'train' and 'test', {key!r} is missing"
            )
        if not isinstance(content[key], list) or not content[key]:
            raise DataError(f"{place}, {key}: expected a list of pairs, at least one")
        parts[key] = tuple(
            _parse_pair(pair, f"{place}, {key} pair {number}", answered=key == "train")
            for number, pair in enumerate(content[key])
        )
    return Task(task_id, parts["train"], parts["test"])


def _parse_pair(content: object, place: str, answered: bool) -> Pair:
    if not isinstance(content, dict) or "input" not in content:
        raise DataError(f"{place}: expected an object with the key 'input'")
    if "output" in content:
        output = parse_grid(content["output"], f"{place}, output")
    elif answered:
        raise DataError(f"{place}: 'output' is missing; every demonstration needs one")
    else:
        output = None
    return Pair(parse_grid(content["input"], f"{place}, input"), output)


def spell_task(task: Task) -> dict[str, Any]:
    """The task as ARC's JSON spells it."""
    return {
        "train": [_spell_pair(pair) for pair in task.demonstrations],
        "test": [_spell_pair(pair) for pair in task.tests],
    }


def _spell_pair(pair: Pair) -> dict[str, Any]:
    spelled = {"input": to_rows(pair.input)}
    return spelled if pair.output is None else {**spelled, "output": to_rows(pair.output)}


def content_hash(tasks: Iterable[Task]) -> str:
    """The sha256 of the tasks' canonical JSON, whatever order they come in."""
    content = {task.id: spell_task(task) for task in tasks}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
