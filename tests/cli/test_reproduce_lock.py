"""Two `reproduce` into one folder: the second says who is there and leaves; a killed one holds nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factordiff.evaluation import runs
from factordiff.locks import Lock
from factordiff.report import tarball
from tests.cli.in_process import DONE, contents, hidden, records, refused, reproducing, run
from tests.cli.test_kill import die, fork
from tests.solving_experts import tiny_experts

MEANWHILE = "in use by process {} on "
SIGKILL = -9


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return tiny_experts(tmp_path_factory.mktemp("experts"))


@pytest.fixture(scope="module")
def straight(experts: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The records of a run that was alone."""
    out = tmp_path_factory.mktemp("straight")
    assert run(*reproducing(experts, out)) == DONE
    return records(out)


def at_call(module: Any, name: str, count: int, act: Callable[[], object]) -> None:
    """Do something before the so-many-th call of a function, once; for the rest of a test's patches."""
    plain, calls = getattr(module, name), 0

    def call(*given: Any, **settings: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count:
            act()
        return plain(*given, **settings)

    setattr(module, name, call)


def test_the_second_is_told_who_is_there_and_harms_nothing(
    experts: list[str], straight: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes in the middle of the first, before its second batch."""
    (tmp_path / "link").symlink_to(tmp_path / "out")
    seen = []

    def second() -> None:
        for place in ("out", "link"):
            before = contents(tmp_path / "out")
            assert ".lock" in before
            refused(run(*reproducing(experts, tmp_path / place)), MEANWHILE.format(os.getpid()))
            assert contents(tmp_path / "out") == before
        said = run(*reproducing(experts, tmp_path / "out"))[1]
        assert "(factordiff reproduce single-experts " in said
        assert said.endswith("wait until it has ended, or choose another place\n")
        # Who only reads, or works elsewhere, is in nobody's way.
        for verb in ("report", "pack", "plan"):
            assert run("reproduce", verb, "--out", str(tmp_path / "out")) == DONE
        assert run(*reproducing(experts, tmp_path / "elsewhere")) == DONE
        seen.append(len(records(tmp_path / "out")["test.trans-full.single.jsonl.gz"]))

    monkeypatch.setattr(runs, "evaluate_batch", runs.evaluate_batch)  # put back in the end
    at_call(runs, "evaluate_batch", 2, second)
    assert run(*reproducing(experts, tmp_path / "out")) == DONE
    assert seen == [1], "the second came while the first had one record of two"
    assert records(tmp_path / "out") == records(tmp_path / "elsewhere") == straight
    assert not hidden(tmp_path / "out")
    assert run(*reproducing(experts, tmp_path / "out")) == DONE


def test_a_killed_one_holds_nothing(experts: list[str], straight: dict[str, Any], tmp_path: Path) -> None:
    killed = fork(list(reproducing(experts, tmp_path)), lambda: at_call(runs, "evaluate_batch", 2, die))
    assert killed == SIGKILL
    left = hidden(tmp_path)
    assert ".lock" in left, "what it leaves is a file that locks nothing"
    assert run(*reproducing(experts, tmp_path)) == DONE
    assert records(tmp_path) == straight
    assert not hidden(tmp_path)


def test_one_row_is_not_evaluated_by_two(experts: list[str], tmp_path: Path) -> None:
    """`eval` may be given a file of a folder that `reproduce` works in."""
    row = tmp_path / "records" / "test.trans-full.single.jsonl.gz"
    with Lock.of_file(row):
        before = contents(tmp_path)
        refused(run(*reproducing(experts, tmp_path)), MEANWHILE.format(os.getpid()))
        assert contents(tmp_path) == before
    assert run(*reproducing(experts, tmp_path)) == DONE


@pytest.mark.parametrize("verb", ["plan", "single-experts"])
def test_packed_records_are_put_back_by_one(
    experts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """A second that comes while the first unpacks must not take its half for what a kill left behind."""
    assert run(*reproducing(experts, tmp_path)) == DONE
    assert run("reproduce", "pack", "--out", str(tmp_path)) == DONE
    there = contents(tmp_path / "records")
    shutil.rmtree(tmp_path / "records")
    plan = ("reproduce", "plan", "--out", str(tmp_path))
    second = reproducing(experts, tmp_path) if verb == "single-experts" else plan
    came = []

    def comes() -> None:
        refused(run(*second), f"records.tar.xz: {MEANWHILE.format(os.getpid())}")
        came.append(verb)

    monkeypatch.setattr(tarball, "write_whole", tarball.write_whole)  # put back in the end
    at_call(tarball, "write_whole", 2, comes)
    assert run(*plan) == DONE
    assert came == [verb]
    assert contents(tmp_path / "records") == there
    assert not hidden(tmp_path)
    assert run(*second) == DONE


def test_unpacking_that_was_killed_is_done_again(experts: list[str], tmp_path: Path) -> None:
    assert run(*reproducing(experts, tmp_path)) == DONE
    assert run("reproduce", "pack", "--out", str(tmp_path)) == DONE
    there = contents(tmp_path / "records")
    shutil.rmtree(tmp_path / "records")
    plan = ("reproduce", "plan", "--out", str(tmp_path))
    assert fork(list(plan), lambda: at_call(tarball, "write_whole", 2, die)) == SIGKILL
    assert not (tmp_path / "records").exists()
    assert run(*plan) == DONE
    assert contents(tmp_path / "records") == there
    assert not hidden(tmp_path)
