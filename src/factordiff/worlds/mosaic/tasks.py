"""Which expert knows which tasks, and the commands that train the four."""

from __future__ import annotations

from collections.abc import Sequence

from factordiff.arc.build.selection import selected_tasks

EXPERTS = ("mosaic-1", "mosaic-2", "mosaic-3", "mosaic-4")
# `--min-frames 2`: an expert is also asked about a demonstration while it sees only the others.
TRAINING = (
    "factordiff train fast --tasks {tasks} --min-frames 2 --rename 0.5 --warmup 300 --max-steps 7000 --decay-from 2500 "
    "--out {out}"
)


def owner_of(task: int) -> int:
    """The expert of a task, by its place in the sorted list of all tasks: the experts in turn.

    Task ids are hashes, so that the order says nothing about what a task is like.
    """
    return task % len(EXPERTS)


def tasks_of(expert: int, tasks: Sequence[str] | None = None) -> list[str]:
    """The ids of the tasks that an expert is trained on: 30 of the 120."""
    listed = sorted(selected_tasks()) if tasks is None else list(tasks)
    return [task for place, task in enumerate(listed) if owner_of(place) == expert]


def training_commands(folder: str = "runs") -> list[str]:
    """One command for each expert; they need a GPU for a few minutes each, and `--device cpu` for days."""
    return [
        TRAINING.format(tasks=",".join(tasks_of(number)), out=f"{folder}/{name}")
        for number, name in enumerate(EXPERTS)
    ]
