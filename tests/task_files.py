"""Tasks in the forms in which others publish them: what is read is written here first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from factordiff.arc.grid import to_rows
from factordiff.arc.task import Pair, Task, spell_task
from factordiff.arc.task_files import write_json


def write_task(task: Task, file: Path) -> None:
    """One task as ARC's JSON."""
    write_json(spell_task(task), file)


def write_challenges(tasks: Iterable[Task], challenges: Path, solutions: Path | None = None) -> None:
    """The ARC Prize's pair of files: tasks without their answers, and the answers."""
    tasks = list(tasks)
    hidden = [
        Task(task.id, task.demonstrations, tuple(Pair(pair.input, None) for pair in task.tests))
        for task in tasks
    ]
    write_json({task.id: spell_task(task) for task in hidden}, challenges)
    if solutions is not None:
        answers = {
            task.id: [to_rows(pair.output) for pair in task.tests if pair.output is not None]
            for task in tasks
        }
        write_json(answers, solutions)
