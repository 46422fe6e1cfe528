"""Where tasks come from: a file, a folder, a challenges file, standard input, or the published ones by id.

One bad task does not stop the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factordiff.arc.published import looks_like_an_id, published_task
from factordiff.arc.task import Task, parse_task
from factordiff.arc.task_files import ENDING, parse_json, read_json, task_files
from factordiff.errors import DataError
from factordiff.files import MOST_BYTES
from factordiff.solving.answer import Refusal

STANDARD_INPUT = "-"


def read_source(source: str, standard_input: bytes = b"") -> list[Task | Refusal]:
    """All tasks of a source in order, those that cannot be read as refusals; a source without any is an error."""
    if source == STANDARD_INPUT:
        if len(standard_input) > MOST_BYTES:
            raise DataError(f"standard input: expected at most {MOST_BYTES:,} bytes, got more")
        return list(_tasks(parse_json(standard_input, "standard input"), "stdin", "standard input"))
    if looks_like_an_id(source):
        return [published_task(source)]
    path = Path(source)
    if path.name == source and not path.suffix and _is_missing(path):
        raise DataError(
            f"{source}: no file or folder has this name, and ids of published tasks are such as 0ca9ddb6"
        )
    if not path.is_dir():
        return list(_tasks(read_json(path), path.stem, str(path)))
    files, closed = task_files(path)
    if not files and not closed:
        raise DataError(f"{path}: expected a folder of task files, it has no .json file")
    found: list[Task | Refusal] = [Refusal(folder.name, reason) for folder, reason in closed.items()]
    seen: dict[str, Path] = {}
    for file in files:
        for one in _tasks_of_file(file):
            name = one.id if isinstance(one, Task) else one.task
            if name in seen:
                one = Refusal(name, f"{file}: task {name} also comes from {seen[name]}; ids must be unique")
            seen.setdefault(name, file)
            found.append(one)
    return found


def _is_missing(path: Path) -> bool:
    """Whether there is nothing; a name that no file can have is another matter."""
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return False


def would_be_read(file: Path, folder: Path) -> bool:
    """Whether a file would be one of a folder's tasks."""
    inside = Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))
    return inside and file.suffix == ENDING


def _tasks_of_file(file: Path) -> Iterator[Task | Refusal]:
    try:
        yield from _tasks(read_json(file), file.stem, str(file))
    except DataError as error:
        yield Refusal(file.stem, str(error))


def _tasks(content: Any, name: str, where: str) -> Iterator[Task | Refusal]:
    if not isinstance(content, dict) or not content:
        raise DataError(
            f"{where}: expected a task (an object with 'train' and 'test') or an object that maps ids to tasks"
        )
    single = bool(content.keys() & {"train", "test"})
    for task_id, task in ({name: content} if single else content).items():
        try:
            yield parse_task(task, task_id, where)
        except DataError as error:
            yield Refusal(task_id, str(error))
