"""A disk that fills up under `eval` and `reproduce`: one sentence, nothing half written, and a later run goes on."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from factordiff import files, locks
from factordiff.report import tarball
from factordiff.report.records import read_records
from tests.cli.in_process import DONE, contents, hidden, records, refused, reproducing, run
from tests.cli.test_kill import fork
from tests.solving_experts import tiny_experts

NO_SPACE = "cannot be written (No space left on device)"


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def room_for(count: int) -> Iterator[None]:
    """A disk that takes so many files or batches, and half of the next."""
    fill, write_all, left = files._fill, files._write_all, count

    def fits() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    def fill_or_fail(temporary: Path, target: Path, data: bytes) -> None:
        if not fits():
            temporary.write_bytes(data[: len(data) // 2])
            full()
        fill(temporary, target, data)

    def write_or_fail(file: Any, data: bytes) -> None:
        if not fits():
            file.write(data[: len(data) // 2])
            full()
        write_all(file, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_fill", fill_or_fail)
        patch.setattr(files, "_write_all", write_or_fail)
        yield


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return tiny_experts(tmp_path_factory.mktemp("experts"))


def evaluating(experts: list[str], limit: str = "1") -> tuple[str, ...]:
    return ("eval", "--experts", experts[0], "--limit", limit, "--reveal", "confidence:1")


def test_eval_keeps_what_was_answered_and_goes_on(experts: list[str], tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl.gz"
    words = (*evaluating(experts, "3"), "--batch", "1", "--out")
    assert run(*words, str(tmp_path / "straight" / "r.jsonl.gz")) == DONE
    straight = records(tmp_path / "straight")["r.jsonl.gz"]
    # How much fits, and how many queries have a record then: a header first, a batch for every query.
    for room, answered in ((0, None), (1, 0), (2, 1), (0, 1), (1, 2)):
        before = out.read_bytes() if out.exists() else b""
        with room_for(room):
            refused(run(*words, str(out)), f"{out}: {NO_SPACE}")
        there = [path for path in tmp_path.iterdir() if path.is_file()]
        assert there == ([] if answered is None else [out])
        if answered is not None:
            assert read_records(out).records == straight[:answered]
            assert out.read_bytes().startswith(before) or not answered
    assert run(*words, str(out)) == DONE
    assert read_records(out).records == straight


def test_eval_without_a_file_says_that_one_would_be_kept(
    experts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    words = evaluating(experts)
    with room_for(1):
        ended = run(*words)
    refused(ended, "give --out FILE on a disk that has room")
    assert "it goes on" not in ended[1], "nothing was kept that could go on"
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    refused(run(*words), "give --out FILE on a disk that has room")
    assert run(*words, "--out", str(tmp_path / "r.jsonl.gz")) == DONE


def test_a_lock_needs_no_room(experts: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    """Who holds it is written into it for people; a full disk must not leave it behind, nor be said of it."""

    class Full(locks.FileIO):
        def write(self, data: Any) -> int:
            return full()

    monkeypatch.setattr(locks, "FileIO", Full)
    with room_for(0):
        ended = run(*evaluating(experts), "--out", str(tmp_path / "r.jsonl.gz"))
    refused(ended, f"r.jsonl.gz: {NO_SPACE}")
    assert not list(tmp_path.iterdir())


def test_reproduce_keeps_what_was_answered_and_goes_on(experts: list[str], tmp_path: Path) -> None:
    """However much fits: what is there is whole, and the end is the same."""
    straight = tmp_path / "straight"
    assert run(*reproducing(experts, straight)) == DONE
    wanted, room = records(straight), 0
    while True:
        out = tmp_path / str(room)
        with room_for(room):
            ended = run(*reproducing(experts, out))
        if ended == DONE:
            break
        refused(ended, NO_SPACE)
        assert not hidden(out)
        assert all(found == wanted[name][: len(found)] for name, found in records(out).items())
        assert run(*reproducing(experts, out)) == DONE
        assert records(out) == wanted
        assert contents(out).keys() == contents(straight).keys()
        room += 1
    assert room > len(contents(straight)), "each file and each batch was refused once"


@pytest.fixture
def told(experts: list[str], tmp_path: Path) -> Path:
    """A folder with records, a report and a tarball."""
    out = ("--out", str(tmp_path / "told"))
    for verb in (
        reproducing(experts, tmp_path / "told"),
        ("reproduce", "report", *out),
        ("reproduce", "pack", *out),
    ):
        assert run(*verb) == DONE
    return tmp_path / "told"


@pytest.mark.parametrize(("verb", "files"), [("report", 2), ("pack", 1)])
def test_what_is_made_of_records_is_replaced_as_a_whole(told: Path, verb: str, files: int) -> None:
    made = contents(told)
    for name in ("README.md", "report.html", "records.tar.xz"):
        (told / name).write_bytes(b"old")
    before = contents(told)
    for room in range(files):
        with room_for(room):
            refused(run("reproduce", verb, "--out", str(told)), NO_SPACE)
        assert contents(told) == before, "each file is the old one, and no other is there"
    assert run("reproduce", verb, "--out", str(told)) == DONE
    replaced = {name for name, data in contents(told).items() if data != before[name]}
    assert replaced == ({"README.md", "report.html"} if verb == "report" else {"records.tar.xz"})
    assert {name: contents(told)[name] for name in replaced} == {name: made[name] for name in replaced}


def test_packed_records_come_back_as_a_whole(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = contents(told)
    shutil.rmtree(told / "records")
    before = contents(told)
    for room in (0, 1):
        with room_for(room):
            refused(run("reproduce", "report", "--out", str(told)), NO_SPACE)
        assert contents(told) == before
    with monkeypatch.context() as patch:
        patch.setattr(tarball.Path, "replace", full)
        refused(run("reproduce", "report", "--out", str(told)), f"records: {NO_SPACE}")
    assert contents(told) == before
    assert not (told / "records").exists()
    assert run("reproduce", "report", "--out", str(told)) == DONE
    assert contents(told) == there


def test_a_full_disk_behind_standard_output_costs_no_record(experts: list[str], tmp_path: Path) -> None:
    """In a fork: what cannot be printed closes the standard output of its process."""

    def nothing_can_be_said() -> None:
        sys.stdout, sys.stderr = open("/dev/full", "w"), open(tmp_path / "said", "w", buffering=1)  # noqa: SIM115

    evaluated = (*evaluating(experts), "--out", str(tmp_path / "r.jsonl.gz"))
    for words, found in ((evaluated, 1), (reproducing(experts, tmp_path / "told"), 2)):
        assert fork(list(words), nothing_can_be_said) == 1
        assert (tmp_path / "said").read_text() == "error: standard output: No space left on device\n"
        assert [len(records(tmp_path)[name]) for name in sorted(records(tmp_path))][-1] == found
    assert not hidden(tmp_path)
