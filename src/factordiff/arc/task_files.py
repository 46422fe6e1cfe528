"""ARC tasks in files: single tasks, folders, the ARC Prize's challenges and solutions, submissions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from factordiff.arc.grid import parse_grid
from factordiff.arc.task import Pair, Task, parse_task
from factordiff.errors import DataError
from factordiff.files import read_regular, write_whole

ENDING = ".json"
ATTEMPTS = 2  # the ARC Prize takes two answers to every test


def read_tasks(source: Path, solutions: Path | None = None) -> dict[str, Task]:
    """The tasks of a task file, a challenges file or a folder of task files, by id.

    A challenges file maps ids to tasks whose tests have no answers; `solutions` is the file that has them.
    """
    if source.is_dir():
        tasks = _read_folder(source)
    else:
        content = read_json(source)
        if not isinstance(content, dict) or not content:
            raise DataError(
                f"{source}: expected a task or an object that maps ids to tasks, got {_kind(content)}"
            )
        if content.keys() & {"train", "test"}:
            tasks = {source.stem: parse_task(content, source.stem, str(source))}
        else:
            tasks = {task_id: parse_task(task, task_id, str(source)) for task_id, task in content.items()}
    return tasks if solutions is None else _answered(tasks, solutions)


def task_files(folder: Path) -> tuple[list[Path], dict[Path, str]]:
    """The files in a folder, at any depth, that end as task files do; and the folders that are closed, with why."""
    found: list[Path] = []
    closed: dict[Path, str] = {}

    def note(error: OSError) -> None:
        place = Path(error.filename)
        closed[place] = f"{place}: cannot be looked into ({error.strerror})"

    for place, _, names in os.walk(folder, onerror=note):
        found += [Path(place) / name for name in names if name.endswith(ENDING)]
    return sorted(found), dict(sorted(closed.items()))


def _read_folder(folder: Path) -> dict[str, Task]:
    files, closed = task_files(folder)
    if closed:
        raise DataError(next(iter(closed.values())))
    if not files:
        raise DataError(f"{folder}: expected a folder of task files, it has no .json file")
    tasks: dict[str, Task] = {}
    places: dict[str, Path] = {}
    for file in files:
        for task_id, task in read_tasks(file).items():
            if task_id in tasks:
                raise DataError(
                    f"{file}: task {task_id} also comes from {places[task_id]}; ids must be unique"
                )
            tasks[task_id], places[task_id] = task, file
    return tasks


def _answered(tasks: Mapping[str, Task], solutions: Path) -> dict[str, Task]:
    """The tasks with their tests' outputs filled in."""
    content = read_json(solutions)
    if not isinstance(content, dict):
        raise DataError(
            f"{solutions}: expected an object that maps ids to lists of grids, got {_kind(content)}"
        )
    answered = {}
    for task_id, task in tasks.items():
        grids = content.get(task_id)
        if not isinstance(grids, list) or len(grids) != len(task.tests):
            raise DataError(
                f"{solutions}: task {task_id}: expected a list of {len(task.tests)} grids, one per test"
            )
        outputs = [
            parse_grid(grid, f"{solutions}: task {task_id}, solution {number}")
            for number, grid in enumerate(grids)
        ]
        tests = tuple(Pair(pair.input, output) for pair, output in zip(task.tests, outputs, strict=True))
        answered[task_id] = Task(task_id, task.demonstrations, tests)
    return answered


def read_json(file: Path) -> Any:
    """The JSON value in a file; whatever is wrong with it becomes a `DataError` that names the file."""
    return parse_json(read_regular(file), str(file))


def parse_json(data: bytes, where: str) -> Any:
    """The JSON value that these bytes spell; whatever is wrong becomes a `DataError` that names the place."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: expected UTF-8 text, byte {error.start} is not") from None
    except RecursionError:
        raise DataError(f"{where}: nested far too deeply for a task") from None
    except ValueError as error:
        raise DataError(f"{where}: not valid JSON ({error}); is the file complete?") from None


def write_json(content: object, file: Path) -> None:
    """Write JSON so that the file is either the old one or the whole new one."""
    write_whole(file, json.dumps(content).encode())


class DuplicateKey(ValueError):
    """A key that occurs twice in one object."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a key that occurs twice is an error, found while it is read once."""
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise DuplicateKey(f"the key {key[:100]!r} occurs twice in one object")
        content[key] = value
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _kind(value: object) -> str:
    return "an empty object" if value == {} else type(value).__name__
