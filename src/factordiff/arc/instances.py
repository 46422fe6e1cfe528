"""Single instances of the data set, as grids."""

from __future__ import annotations

from difflib import get_close_matches

from factordiff.arc.artefact import Artefact
from factordiff.arc.grid import Grid, from_canvas
from factordiff.errors import InvalidInput


def task_index(artefact: Artefact, task: str) -> int:
    """The position of a task of the data set."""
    if task not in artefact.tasks:
        near = get_close_matches(task, artefact.tasks, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"task: {task!r} is not one of the data set's {len(artefact.tasks)} tasks{hint}")
    return artefact.tasks.index(task)


def instance_grids(artefact: Artefact, task: int, instance: int) -> tuple[Grid, Grid]:
    """The input and output grid of one instance."""
    given, answer = (
        from_canvas(
            artefact.arrays[f"{side}s"][task, instance],
            tuple(artefact.arrays[f"{side}_shapes"][task, instance].tolist()),
        )
        for side in ("input", "output")
    )
    return given, answer
