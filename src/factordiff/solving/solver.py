"""A task in, two attempts per test out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from factordiff.arc.conditions import condition_from
from factordiff.arc.grid import CELLS, COLORS, SIDE, Canvas, Grid, to_canvas
from factordiff.arc.shapes import answer_grid
from factordiff.arc.task import Pair, Task, parse_task
from factordiff.arc.task_files import read_tasks
from factordiff.errors import DataError, InvalidInput
from factordiff.experts.condition import Condition
from factordiff.sampling.sampler import Samples
from factordiff.solving.answer import Alone, Answer, TaskAnswers
from factordiff.solving.members import ExpertLike
from factordiff.solving.team import Team, compose

MOST_DEMONSTRATIONS = 10
DEFAULT_EXPERTS = ("trans-full", "conv-full")

TaskLike = Task | Mapping[str, Any] | str | Path
Given = Mapping[tuple[int, int], int]  # (row, column) of a cell, and its color


def solve(
    task: TaskLike,
    experts: Sequence[ExpertLike] | Mapping[str, ExpertLike] = DEFAULT_EXPERTS,
    method: str = "routing",
    *,
    seed: int = 0,
    given: Given | None = None,
    **composition: Any,
) -> TaskAnswers:
    """The answers to one task: a `Task`, ARC's JSON as Python values, or the path of a task file.

    `composition` are the further arguments of `compose`: temperatures, factors, reveal, device and so on.
    """
    return compose(experts, method, **composition).solve(task, seed=seed, given=given)


def solve_task(
    team: Team,
    task: TaskLike,
    *,
    seed: int = 0,
    given: Given | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> TaskAnswers:
    """The team's answers to every test of a task.

    Attempt 1 is the composition's answer. Attempt 2 is the first expert's own, in the order of the team, that
    differs from it. Random numbers belong to the test's place in its task, so that a task is answered the same
    alone and in a folder. `given` cells are kept as they are; `on_step(done, total)` hears how far each run is.
    """
    task = _as_task(task)
    check_task(task)
    return TaskAnswers(
        task.id, tuple(_answer(team, task, number, seed, given, on_step) for number in range(len(task.tests)))
    )


def check_task(task: Task) -> None:
    """Refuse a task that does not fit the experts, with a sentence that names the place."""
    if not 1 <= len(task.demonstrations) <= MOST_DEMONSTRATIONS:
        raise InvalidInput(
            f"task {task.id}, train: expected 1 to {MOST_DEMONSTRATIONS} demonstrations, "
            f"got {len(task.demonstrations)}"
        )
    for key, pairs in (("train", task.demonstrations), ("test", task.tests)):
        for number, pair in enumerate(pairs):
            to_canvas(pair.input, f"task {task.id}, {key} pair {number}, input")
            if pair.output is not None:
                to_canvas(pair.output, f"task {task.id}, {key} pair {number}, output")


def condition_of(task: Task, number: int) -> Condition:
    """What the experts are told about one test of a task."""
    query = task.tests[number].input
    grids = [(pair.input, pair.output) for pair in task.demonstrations if pair.output is not None]
    pairs = [(query, query), *grids]  # only the input of the first is looked at
    canvases = torch.from_numpy(np.stack([np.stack([to_canvas(grid) for grid in pair]) for pair in pairs]))
    shapes = torch.tensor([[grid.shape for grid in pair] for pair in pairs])
    present = torch.ones(1, len(grids), dtype=torch.bool)
    return condition_from(canvases.to(torch.int64)[None], shapes[None], present)


def _answer(
    team: Team,
    task: Task,
    number: int,
    seed: int,
    given: Given | None,
    on_step: Callable[[int, int], None] | None,
) -> Answer:
    test, condition = task.tests[number], condition_of(task, number).to(team.device)
    start = starting_canvas(given).to(team.device)
    item = torch.tensor([number], device=team.device)

    def run(who: Team, trace: bool) -> Samples:
        return replace(who, layout=(SIDE, SIDE)).sample(
            start,
            condition,
            seed=seed,
            items=item,
            trace=trace,
            on_step=on_step,
        )

    together = run(team, True)
    canvas = _canvas(together)
    grid = _cut(canvas, task, test)
    alone = []
    for index, name in enumerate(team.names):
        own = together if team.method == "single" else run(team.alone(index), False)
        cost = 0 if own is together else int(own.executed_passes.sum())
        alone.append(Alone(name, _canvas(own), _cut(_canvas(own), task, test), cost))
    others = [one.grid for one in alone if not np.array_equal(one.grid, grid)]
    return Answer(
        team,
        task.id,
        number,
        test.input,
        test.output,
        canvas,
        grid,
        others[0] if others else grid,
        tuple(alone),
        together,
        condition,
    )


def starting_canvas(given: Given | None) -> torch.Tensor:
    """One canvas, masked but for the given cells."""
    canvas = torch.full((1, CELLS), COLORS.mask)
    if not isinstance(given, Mapping | None):
        raise InvalidInput(
            f"given: expected a mapping from (row, column) to color, got {type(given).__name__}"
        )
    for cell, color in (given or {}).items():
        if not (isinstance(cell, tuple) and len(cell) == 2 and all(map(_is_whole, cell))):
            raise InvalidInput(f"given: expected cells as (row, column), got {cell!r}")
        row, column = cell
        if not (0 <= row < SIDE and 0 <= column < SIDE):
            raise InvalidInput(f"given: cell ({row}, {column}) lies outside the {SIDE}x{SIDE} canvas")
        if not _is_whole(color) or not 0 <= color < COLORS.size:
            raise InvalidInput(f"given: cell ({row}, {column}): expected a color 0..9, got {color!r}")
        canvas[0, row * SIDE + column] = color
    return canvas


def _is_whole(number: object) -> bool:
    """Whether something is a whole number, numpy's included; a fraction would be cut in silence."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _canvas(samples: Samples) -> Canvas:
    return samples.x_0[0].cpu().numpy().astype(np.uint8)


def _cut(canvas: Canvas, task: Task, test: Pair) -> Grid:
    """The canvas cut to the shape that the demonstrations tell."""
    shown = [(pair.input, pair.output) for pair in task.demonstrations if pair.output is not None]
    return answer_grid(canvas, shown, test.input)


def _as_task(task: TaskLike) -> Task:
    if isinstance(task, Task):
        return task
    if isinstance(task, Mapping):
        return parse_task(dict(task), "task", "solve")
    if not isinstance(task, str | Path):
        raise InvalidInput(
            f"task: expected a Task, ARC's JSON as a mapping, or the path of a file, got {type(task).__name__}"
        )
    tasks = read_tasks(Path(task))
    if len(tasks) != 1:
        raise DataError(
            f"{task}: has {len(tasks)} tasks; solve takes one (choose from arc.task_files.read_tasks, or use "
            "the command line)"
        )
    return next(iter(tasks.values()))
