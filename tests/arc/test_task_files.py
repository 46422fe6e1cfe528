from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factordiff.arc.build.official import arc_agi_1
from factordiff.arc.task import Pair, Task, spell_task
from factordiff.arc.task_files import (
    parse_json,
    read_tasks,
)
from factordiff.errors import DataError, FactorDiffError, FileError
from tests.task_files import write_challenges, write_task

GOOD = {"train": [{"input": [[1, 2]], "output": [[2], [1]]}], "test": [{"input": [[3]]}]}


def written(folder: Path, content: object, name: str = "abc.json") -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def changed(path: list[Any], value: object) -> dict[str, Any]:
    """The good task with one place replaced, or removed if the value is `...`."""
    content = json.loads(json.dumps(GOOD))
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            changed(["train", 0, "output", 1, 0], 10),
            r"task abc, train pair 0, output, cell \(row 1, column 0\)",
        ),
        (changed(["test", 0, "input"], [[1, 2], [3]]), "test pair 0, input, row 1: expected 2 cells"),
        (changed(["test", 0, "input"], []), "test pair 0, input: expected a list of rows"),
        (changed(["test", 0, "input"], [[0] * 31] * 31), "test pair 0, input: 31x31 cells"),
        (changed(["train"], []), "task abc, train: expected a list of pairs, at least one"),
        (changed(["train"], ...), "'train' is missing"),
        (changed(["test"], ...), "'test' is missing"),
        (changed(["test", 0, "input"], ...), "test pair 0: expected an object with the key 'input'"),
        (changed(["train", 0, "output"], ...), "train pair 0: 'output' is missing"),
        (changed(["train", 0], 7), "train pair 0: expected an object"),
        ([], "expected a task or an object that maps ids to tasks, got list"),
        ({}, "got an empty object"),
        ({"abc": 7}, "task abc: expected an object"),
        ('{"train": [', "not valid JSON"),
        ('{"train": [], "train": []}', "the key 'train' occurs twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested far too deeply"),
        ("1" * 5_000, "not valid JSON"),
    ],
)
def test_bad_tasks_are_named_with_file_and_place(tmp_path: Path, content: object, message: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(DataError, match=message) as caught:
        read_tasks(file)
    assert str(caught.value).startswith(str(file))


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "abc.json"
    file.write_bytes(b'{"train": "\xff"}')
    with pytest.raises(DataError, match="expected UTF-8 text, byte 11 is not"):
        read_tasks(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_tasks(tmp_path / "none.json")


def test_two_tasks_of_one_id_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, GOOD)
    with pytest.raises(DataError, match=r"b/abc.json: task abc also comes from .*a/abc.json"):
        read_tasks(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no \.json file"):
        read_tasks(tmp_path / "empty")


def test_all_800_tasks_survive_every_form(tmp_path: Path) -> None:
    for name, tasks in arc_agi_1().items():
        assert len(tasks) == 400
        folder = tmp_path / name
        for task in tasks.values():
            write_task(task, folder / f"{task.id}.json")
        challenges, solutions = tmp_path / f"{name}-c.json", tmp_path / f"{name}-s.json"
        write_challenges(tasks.values(), challenges, solutions)
        hidden = read_tasks(challenges)
        for again in (read_tasks(folder), read_tasks(challenges, solutions)):
            assert {key: spell_task(task) for key, task in again.items()} == {
                key: spell_task(task) for key, task in tasks.items()
            }
        assert all(pair.output is None for task in hidden.values() for pair in task.tests)
    assert not list(tmp_path.rglob(".*"))


def test_solutions_must_answer_every_test(tmp_path: Path) -> None:
    file = written(tmp_path, {"abc": GOOD}, "challenges.json")
    for bad in ({}, {"abc": []}, {"abc": 3}, []):
        with pytest.raises(DataError, match=r"solutions\.json"):
            read_tasks(file, written(tmp_path, bad, "solutions.json"))
    with pytest.raises(DataError, match="solution 0, cell"):
        read_tasks(file, written(tmp_path, {"abc": [[[11]]]}, "solutions.json"))


def test_a_file_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    one, two = np.array([[1]], dtype=np.uint8), np.array([[2, 3]], dtype=np.uint8)
    (tmp_path / "submission.json").touch()
    with pytest.raises(FileError, match="cannot be written"):
        write_task(Task("x", (Pair(one, two),), (Pair(one, None),)), tmp_path / "submission.json" / "x.json")


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
near_grids = st.lists(st.lists(st.integers(0, 9) | values, max_size=4), max_size=4) | values
near_pairs = st.dictionaries(st.sampled_from(["input", "output", "x"]), near_grids, max_size=3) | values
near_tasks = st.fixed_dictionaries(
    {}, optional={key: st.lists(near_pairs, max_size=3) | values for key in ("train", "test")}
)
near_files = near_tasks | st.dictionaries(st.text(max_size=4), near_tasks | values, max_size=3) | values
texts = near_files.map(lambda content: json.dumps(content).encode())
damaged = st.tuples(texts, st.integers(0, 400), st.binary(max_size=3)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
)
truncated = st.tuples(texts, st.integers(0, 400)).map(lambda parts: parts[0][: parts[1]])


def fuzz(count: int, folder: Path) -> None:
    outcomes = {"read": 0, "refused": 0, "unnamed": 0}

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts | damaged | truncated | st.binary(max_size=40))
    def read(content: bytes) -> None:
        file = folder / "fuzzed.json"
        file.write_bytes(content)
        try:
            tasks = read_tasks(file)
        except FactorDiffError as error:
            outcomes["refused"] += 1
            outcomes["unnamed"] += str(file) not in str(error)
        else:
            assert all(task.demonstrations and task.tests for task in tasks.values())
            outcomes["read"] += 1

    read()
    assert outcomes["unnamed"] == 0, "every error names the file"
    assert outcomes["read"] + outcomes["refused"] >= count * 0.9
    assert outcomes["refused"] > count / 2


def test_a_thousand_fuzzed_files_raise_nothing_but_our_errors(tmp_path: Path) -> None:
    fuzz(1_000, tmp_path)


@pytest.mark.slow
def test_ten_thousand_fuzzed_files_raise_nothing_but_our_errors(tmp_path: Path) -> None:
    fuzz(10_000, tmp_path)


def test_a_key_that_occurs_twice_is_found_in_time_that_grows_with_the_file_alone() -> None:
    """Counting each key among all took a minute for 0.9 MB."""
    many = ",".join(f'"k{number}":0' for number in range(100_000))
    begun = time.monotonic()
    with pytest.raises(DataError, match=r"the key 'k99999' occurs twice in one object"):
        parse_json(f'{{{many},"k99999":1}}'.encode(), "many")
    assert time.monotonic() - begun < 5


def test_pipes_devices_and_giants_in_a_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DataError, match=r"pipe\.json: is a pipe, expected a regular file"):
        read_tasks(tmp_path)
    (tmp_path / "pipe.json").unlink()
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"zero\.json: is a device, expected a regular file"):
        read_tasks(tmp_path)
