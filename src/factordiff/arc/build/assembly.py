"""From candidates to the data set: which instances, in which order, with which evaluation list.

Assembly goes over the tasks in the order of their ids and takes each task's first 1,000 candidates whose orbit no
earlier task has. Within a task the instances are then ordered by the hash of their orbit: candidates come common
ones first (a rare orbit is rarely the first to appear), so splitting them as they come would test on rarer
instances than were trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factordiff.arc.artefact import Artefact, encode_ids, make_artefact
from factordiff.arc.build.candidates import Candidate, Candidates, rule
from factordiff.arc.build.official import CONTENT, fitting_tasks
from factordiff.arc.build.rearc import hash_words
from factordiff.arc.build.selection import CANDIDATES, INSTANCES, SEED, selected_tasks
from factordiff.arc.build.workers import collect_all
from factordiff.arc.grid import CELLS, Grid, to_canvas
from factordiff.arc.splits import EVALUATION_FRAMES, TRAIN, VALIDATION_AND_TEST
from factordiff.arc.task import Task
from factordiff.errors import DataError

PATIENCE = 400_000  # attempts at a task before a build with another seed gives up
_PURPOSE_EVALUATION = 13  # streams.Purpose.EVALUATION


def build(
    folder: Path,
    seed: int = SEED,
    workers: int = 1,
    tasks: Sequence[str] | None = None,
    progress: Callable[[str, int], None] = lambda task, found: None,
) -> Artefact:
    """Build the data set; `folder` keeps what is found, so that an interrupted build goes on where it stopped.

    `tasks` are the 120 unless a part of them is asked for; `progress` hears (task, candidates so far).
    """
    fitting = fitting_tasks()
    chosen = chosen_tasks(tasks)
    collected = collect_all(chosen, seed, CANDIDATES, PATIENCE, folder, workers, progress)
    taken = assemble(collected)
    arrays = {
        "tasks": encode_ids(chosen),
        **instance_arrays([taken[task] for task in chosen]),
        "evaluation_frames": evaluation_frames(chosen, seed),
        **official_arrays("official", [fitting[task] for task in chosen]),
        **official_arrays("unseen", [task for name, task in fitting.items() if name not in chosen]),
    }
    return make_artefact(arrays, _description(seed, len(chosen), arrays))


def chosen_tasks(tasks: Sequence[str] | None = None) -> list[str]:
    """The tasks of a build, sorted by id: the 120, or those named, which must fit 10x10."""
    fitting = fitting_tasks()
    chosen = sorted(selected_tasks() if tasks is None else set(tasks))
    unknown = [task for task in chosen if task not in fitting]
    if unknown:
        raise DataError(f"tasks: {', '.join(unknown)} not among the {len(fitting)} tasks that fit 10x10")
    return chosen


def assemble(collected: Mapping[str, Candidates], count: int = INSTANCES) -> dict[str, list[Candidate]]:
    """Each task's instances: its first candidates that no earlier task has, ordered by the hash of their orbit."""
    used: set[bytes] = set()
    taken = {}
    for task in sorted(collected):
        fresh = [candidate for candidate in collected[task].found if candidate.orbit not in used][:count]
        if len(fresh) < count:
            raise DataError(
                f"task {task}, seed {collected[task].seed}: only {len(fresh)} of {count} instances that are unique "
                f"up to symmetry in {collected[task].attempts:,} attempts; choose another seed"
            )
        used.update(candidate.orbit for candidate in fresh)
        taken[task] = sorted(fresh, key=lambda candidate: candidate.orbit)
    return taken


def evaluation_frames(tasks: Sequence[str], seed: int) -> np.ndarray:
    """For every validation and test query its demonstrations: distinct training instances, by a fixed key."""
    frames = np.zeros((len(tasks), len(VALIDATION_AND_TEST), EVALUATION_FRAMES), dtype="<i2")
    for row, task in enumerate(tasks):
        for column, query in enumerate(VALIDATION_AND_TEST):
            drawn: list[int] = []
            for slot in range(EVALUATION_FRAMES):
                word = hash_words(_PURPOSE_EVALUATION, seed, int(task, 16), query, slot)
                index = word % (len(TRAIN) - slot)
                for earlier in sorted(drawn):
                    index += index >= earlier
                drawn.append(index)
            frames[row, column] = drawn
    return frames


def official_arrays(name: str, tasks: Sequence[Task]) -> dict[str, np.ndarray]:
    """The published pairs of tasks: a row per pair, with its task's position and whether it is a test."""
    pairs = [
        (row, is_test, pair)
        for row, task in enumerate(tasks)
        for is_test, group in ((False, task.demonstrations), (True, task.tests))
        for pair in group
    ]
    grids = [(pair.input, pair.output) for _, _, pair in pairs if pair.output is not None]
    return {
        f"{name}_tasks": encode_ids([task.id for task in tasks]),
        f"{name}_owners": np.array([row for row, _, _ in pairs], dtype="<i2"),
        f"{name}_is_test": np.array([is_test for _, is_test, _ in pairs], dtype=bool),
        **{f"{name}_{key}": array for key, array in _pair_arrays(grids).items()},
    }


def instance_arrays(taken: Sequence[Sequence[Candidate]]) -> dict[str, np.ndarray]:
    """The instances of the tasks, as many of each: canvases, shapes, and the attempts they come from."""
    rows = [_pair_arrays([one.pair for one in instances]) for instances in taken]
    arrays = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
    return {**arrays, "attempts": np.array([[one.number for one in row] for row in taken], dtype="<i4")}


def _pair_arrays(pairs: Sequence[tuple[Grid, Grid]]) -> dict[str, np.ndarray]:
    arrays = {}
    for side, name in enumerate(("input", "output")):
        grids = [pair[side] for pair in pairs]
        arrays[f"{name}s"] = np.array([to_canvas(grid) for grid in grids], dtype=np.uint8).reshape(-1, CELLS)
        arrays[f"{name}_shapes"] = np.array([grid.shape for grid in grids], dtype=np.uint8).reshape(-1, 2)
    return arrays


def _description(seed: int, tasks: int, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        "seed": seed,
        "rule": {**rule(), "candidates": CANDIDATES, "instances": INSTANCES, "order": "hash of the orbit"},
        "arc_agi_1": {"training_sha256": CONTENT["training"]},
        "counts": {
            "tasks": tasks,
            "pairs": tasks * INSTANCES,
            "official_tests": int(arrays["official_is_test"].sum()),
            "unseen_tasks": len(arrays["unseen_tasks"]),
            "unseen_tests": int(arrays["unseen_is_test"].sum()),
        },
    }
