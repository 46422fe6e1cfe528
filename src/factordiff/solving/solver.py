"""A task in, two attempts per test out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factordiff.arc.grid import to_canvas
from factordiff.arc.published import looks_like_an_id, published_task
from factordiff.arc.task import Task, parse_task
from factordiff.arc.task_files import ATTEMPTS, read_tasks
from factordiff.errors import DataError, InvalidInput
from factordiff.solving.answer import Answer, TaskAnswers
from factordiff.solving.question import Given, Question, canvas_of, condition_of, starting_canvas
from factordiff.solving.second_attempt import OnStep, second_attempt
from factordiff.team.members import ExpertLike
from factordiff.team.team import Team, compose

__all__ = ["answer", "check_task", "condition_of", "solve", "starting_canvas"]

MOST_DEMONSTRATIONS = 10
DEFAULT_EXPERTS = ("trans-full", "conv-full")

TaskLike = Task | Mapping[str, Any] | str | Path


def solve(
    task: TaskLike,
    experts: Team | Sequence[ExpertLike] | Mapping[str, ExpertLike] | str | Path = DEFAULT_EXPERTS,
    method: str = "routing",
    *,
    seed: int = 0,
    given: Given | None = None,
    attempts: int = ATTEMPTS,
    on_step: OnStep | None = None,
    **composition: Any,
) -> TaskAnswers:
    """The answers to every test of a task: a `Task`, ARC's JSON as Python values, a file's path, or an id.

    `experts` are a team, or what `compose` takes, and `composition` its further arguments: temperatures, factors,
    reveal, device and so on. Attempt 1 is the composition's answer. Attempt 2 is the team's best other one
    (`second_attempt`), which takes about four times as long; with `attempts=1` it is left out. Random numbers belong to
    the test's place in its task, so that a task is answered the same alone and in a folder. `given` cells are kept as
    they are; `on_step(done, total)` hears how far each run is.
    """
    if attempts not in (1, ATTEMPTS):
        raise InvalidInput(f"attempts: expected 1 or {ATTEMPTS}, got {attempts!r}")
    if not isinstance(experts, Team):
        team = compose(experts, method, **composition)
    elif method == "routing" and not composition:
        team = experts
    else:
        raise InvalidInput(
            f"{next(iter(composition), 'method')}: a team has its method and numbers already; compose another one"
        )
    task = _as_task(task)
    check_task(task)
    questions = [Question(task, number, seed, given) for number in range(len(task.tests))]
    return TaskAnswers(task.id, tuple(answer(question, team, attempts, on_step) for question in questions))


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


def answer(question: Question, team: Team, attempts: int = 2, on_step: OnStep | None = None) -> Answer:
    """The team's answer to one question."""
    samples = question.ask(team, trace=True, on_step=on_step)
    canvas = canvas_of(samples)
    grid = question.cut(canvas)
    second = second_attempt(team, question, samples, grid, on_step) if attempts > 1 else None
    return Answer(team, question, canvas, grid, second, samples)


def _as_task(task: TaskLike) -> Task:
    if isinstance(task, Task):
        return task
    if isinstance(task, Mapping):
        return parse_task(dict(task), "task", "solve")
    if not isinstance(task, str | Path):
        raise InvalidInput(
            f"task: expected a Task, ARC's JSON as a mapping, the path of a file or an id, got {type(task).__name__}"
        )
    if looks_like_an_id(str(task)):
        return published_task(str(task))
    tasks = read_tasks(Path(task))
    if len(tasks) != 1:
        raise DataError(
            f"{task}: has {len(tasks)} tasks; solve takes one (choose from arc.task_files.read_tasks, or use "
            "the command line)"
        )
    return next(iter(tasks.values()))
