"""Single instances of the data set, as grids."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np

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
    return stored_grids(artefact.arrays, "", (task, instance))


def stored_grids(
    arrays: Mapping[str, np.ndarray], prefix: str, place: int | tuple[int, int]
) -> tuple[Grid, Grid]:
    """The input and output grid at a place of the arrays that begin with `prefix`."""
    given, answer = (
        from_canvas(
            arrays[f"{prefix}{side}s"][place], tuple(arrays[f"{prefix}{side}_shapes"][place].tolist())
        )
        for side in ("input", "output")
    )
    return given, answer
