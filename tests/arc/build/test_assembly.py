from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from factordiff.arc.artefact import Artefact, load_manifest
from factordiff.arc.build import workers
from factordiff.arc.build.assembly import assemble, build, evaluation_frames
from factordiff.arc.build.candidates import Candidate, Candidates
from factordiff.errors import DataError

TEN = [
    "0d3d703e",
    "25d8a9c8",
    "27a28665",
    "3618c87e",
    "3af2c5a8",
    "46442a0e",
    "8403a5d5",
    "8d5021e8",
    "8f2ea7aa",
    "d037b0a7",
]
FEW = TEN[-4:]


def candidate(number: int, orbit: int) -> Candidate:
    grid = np.full((1, 1), number % 10, dtype=np.uint8)
    return Candidate(number, (grid, grid), bytes([orbit]))


def test_assembly_takes_first_candidates_that_no_earlier_task_has() -> None:
    collected = {
        "b": Candidates("b", 0, found=[candidate(0, 5), candidate(1, 9), candidate(4, 3), candidate(6, 7)]),
        "a": Candidates("a", 0, found=[candidate(2, 9), candidate(3, 1), candidate(5, 5)]),
    }
    taken = assemble(collected, count=2)
    assert [one.number for one in taken["a"]] == [3, 2], "ordered by orbit, 1 before 9"
    assert [one.number for one in taken["b"]] == [4, 0], "9 belongs to a; 5 does not, a had enough before it"
    with pytest.raises(DataError, match="task b, seed 0: only 2 of 3 instances"):
        assemble(collected, count=3)


def test_tasks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tasks: 00d62c1b not among the 178"):
        build(tmp_path, tasks=["00d62c1b", "27a28665"])


def test_two_workers_rebuild_the_shipped_instances(shipped: Artefact, tmp_path: Path) -> None:
    """For tasks whose orbits no earlier one shares, a part of the build is a part of the data set."""
    tasks = ["27a28665", "8403a5d5"]
    heard: dict[str, int] = {}
    small = build(tmp_path, workers=2, tasks=tasks, progress=heard.__setitem__)
    assert heard == dict.fromkeys(tasks, 1_500)
    rows = [shipped.tasks.index(task) for task in tasks]
    for name in ("inputs", "outputs", "input_shapes", "output_shapes", "attempts", "evaluation_frames"):
        assert np.array_equal(small.arrays[name], shipped.arrays[name][rows])


def test_evaluation_frames_are_functions_of_task_and_query(shipped: Artefact) -> None:
    assert np.array_equal(
        evaluation_frames(shipped.tasks[40:42], 0), shipped.arrays["evaluation_frames"][40:42]
    )
    assert not np.array_equal(
        evaluation_frames(shipped.tasks[:1], 1), shipped.arrays["evaluation_frames"][:1]
    )


def command(out: Path, tasks: list[str], workers: int) -> list[str]:
    chosen = [part for task in tasks for part in ("--task", task)]
    return [
        sys.executable,
        "-m",
        "factordiff",
        "data",
        "build",
        "--workers",
        str(workers),
        "--out",
        str(out),
        *chosen,
    ]


def built_hash(out: Path) -> str:
    return str(load_manifest(out)["sha256"])


def snapshot(out: Path) -> set[tuple[str, int]]:
    return {(path.name, path.stat().st_mtime_ns) for path in Path(f"{out}.partial").glob("*.json")}


def build_killed_at_random(out: Path, tasks: list[str], workers: int, key: int, kills: int) -> None:
    """Build, but be killed `kills` times: each time at a random moment after something new was found."""
    rng = random.Random(key)
    for _ in range(kills):
        before = snapshot(out)
        process = subprocess.Popen(
            command(out, tasks, workers), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        while snapshot(out) == before:
            assert process.poll() is None, "the build was over before it could be killed"
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command(out, tasks, workers), check=True, capture_output=True)


def test_a_killed_build_goes_on_and_ends_alike(tmp_path: Path) -> None:
    subprocess.run(command(tmp_path / "whole.npz", FEW, 2), check=True, capture_output=True)
    build_killed_at_random(tmp_path / "killed.npz", FEW, 1, key=0, kills=2)
    assert built_hash(tmp_path / "killed.npz") == built_hash(tmp_path / "whole.npz")
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not (tmp_path / "killed.npz.partial").exists()


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path / "x.npz", TEN, 2), stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("workers outlived the build that started them")


@pytest.mark.slow
@pytest.mark.parametrize("key", range(3))
def test_ten_tasks_killed_at_random_moments_end_alike(tmp_path: Path, key: int) -> None:
    subprocess.run(command(tmp_path / "whole.npz", TEN, 2), check=True, capture_output=True)
    build_killed_at_random(tmp_path / "killed.npz", TEN, 1 + key % 2, key, kills=4)
    assert built_hash(tmp_path / "killed.npz") == built_hash(tmp_path / "whole.npz")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_clean_build_reproduces_the_shipped_data_set(
    tmp_path: Path, workers: int, shipped: Artefact
) -> None:
    assert build(tmp_path, workers=workers).sha256 == shipped.sha256


def test_no_more_processes_are_made_than_there_are_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def made(count: int, *_: object) -> None:
        asked.append(count)
        raise DataError("enough")

    monkeypatch.setattr(workers, "ProcessPoolExecutor", made)
    for count in (1, 2, 2**64):
        with pytest.raises(DataError, match="enough"):
            build(tmp_path, 0, count, FEW[:2])
    assert asked == [1, 2, 2]
