"""The published ARC-AGI-1 tasks that come with the package, by id: those all of whose grids fit the canvas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import numpy as np

from factordiff.arc.artefact import decode_ids, load_artefact
from factordiff.arc.instances import stored_grids
from factordiff.arc.task import Pair, Task
from factordiff.errors import DataError

TASK_ID = re.compile(r"[0-9a-f]{8}")


def looks_like_an_id(source: str) -> bool:
    """Whether these are the eight digits of a task's id and no file here has that name."""
    return TASK_ID.fullmatch(source) is not None and not Path(source).exists()


def published_task(task_id: str) -> Task:
    """The task of that id as it was published, the answers to its tests included."""
    tasks = published_tasks()
    if task_id not in tasks:
        near = get_close_matches(task_id, tasks, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise DataError(
            f"{task_id}: no file has this name, and it is not one of the {len(tasks)} published ARC-AGI-1 training "
            f"tasks that fit 10x10 and come with the package; give a task file.{hint}"
        )
    return tasks[task_id]


def published_tasks() -> dict[str, Task]:
    """All of them by id: the 120 of the data set, then those that no expert was trained on."""
    return {task_id: task for part in _parts().values() for task_id, task in part.items()}


def is_familiar(task_id: str) -> bool:
    """Whether it is one of the data set's tasks, instances of which the shipped experts were trained on."""
    return task_id in _parts()["official"]


@cache
def _parts() -> dict[str, dict[str, Task]]:
    arrays = load_artefact().arrays
    return {part: _tasks(arrays, part) for part in ("official", "unseen")}


def _tasks(arrays: Mapping[str, np.ndarray], part: str) -> dict[str, Task]:
    ids, owners, is_test = (arrays[f"{part}_{key}"] for key in ("tasks", "owners", "is_test"))
    pairs = [Pair(*stored_grids(arrays, f"{part}_", row)) for row in range(len(owners))]

    def of(task: int, tests: bool) -> tuple[Pair, ...]:
        return tuple(pairs[row] for row in np.flatnonzero((owners == task) & (is_test == tests)))

    return {
        task_id: Task(task_id, of(task, False), of(task, True))
        for task, task_id in enumerate(decode_ids(ids))
    }
