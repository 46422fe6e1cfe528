"""Does the data set still come out of its generators? A sample of it, or all of it, made anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from factordiff.arc.artefact import Artefact
from factordiff.arc.build.difficulty import Difficulty, stated_difficulty
from factordiff.arc.build.rearc import PURPOSE_INSTANCE, attempt, hash_words
from factordiff.arc.grid import Grid, to_canvas
from factordiff.errors import DataError


def rebuild_sample(
    artefact: Artefact, per_task: int, key: int = 0, progress: Callable[[int], None] = lambda done: None
) -> int:
    """Make `per_task` instances of every task anew and compare them cell by cell; returns how many.

    Which ones is a function of `key`, so another key looks at others.
    """
    seed, attempts = int(artefact.manifest["seed"]), artefact.arrays["attempts"]
    difficulty = stated_difficulty(artefact.manifest["rule"]["difficulty"])
    done = 0
    for row, task in enumerate(artefact.tasks):
        for draw in range(per_task):
            instance = hash_words(PURPOSE_INSTANCE, key, int(task, 16), draw) % attempts.shape[1]
            _compare(artefact, row, instance, seed, difficulty)
            done += 1
        progress(done)
    return done


def _compare(artefact: Artefact, row: int, instance: int, seed: int, difficulty: Difficulty) -> None:
    task, number = artefact.tasks[row], int(artefact.arrays["attempts"][row, instance])
    made = attempt(task, seed, number, difficulty).pair
    if made is None or not all(
        _same(artefact, side, row, instance, grid)
        for side, grid in zip(("input", "output"), made, strict=True)
    ):
        raise DataError(
            f"task {task}, instance {instance} (seed {seed}, attempt {number}): the generator does not give the "
            "stored pair; the generators or the data set are not those of the manifest"
        )


def _same(artefact: Artefact, side: str, row: int, instance: int, grid: Grid) -> bool:
    shape = tuple(artefact.arrays[f"{side}_shapes"][row, instance].tolist())
    return grid.shape == shape and np.array_equal(artefact.arrays[f"{side}s"][row, instance], to_canvas(grid))
