"""SIGKILL at random moments of every verb that writes much: what is there is whole, and the end is the same.

The command runs in a fork of this process, which has imported everything: a kill then costs no more than the work.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch

from factordiff import files
from factordiff.arc.task import spell_task
from factordiff.cli.app import main
from factordiff.experiments.pairs import EARLY, FULL_FULL
from factordiff.networks.store import build, save_expert
from factordiff.report.records import read_records
from factordiff.streams import Purpose, integers, uniform
from tests.solving_experts import TINY, task, tiny_experts


@dataclass(frozen=True)
class Verb:
    """A command that writes into a folder, what it leaves there, and what must be true of it at any time."""

    words: Callable[[Path], list[str]]
    left: Callable[[Path], Any]
    whole: Callable[[Path], None] = lambda folder: None


def fork(words: list[str], moment: Callable[[], None] = lambda: None) -> int:
    """Run a command in a fork; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1):
                os.dup2(nowhere, stream)
            sys.argv = ["factordiff", *words]
            torch.set_num_threads(1)
            moment()
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_time(seconds: float) -> Callable[[], None]:
    def begin() -> None:
        timer = threading.Timer(seconds, die)
        timer.daemon = True
        timer.start()

    return begin


def at_write(count: int, name: str, after: bool) -> Callable[[], None]:
    """At the so-many-th system call by which a file becomes whole, before it or after it."""

    def begin() -> None:
        plain, calls = getattr(files.os, name), 0

        def call(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == count and not after:
                die()
            result = plain(*given)
            if calls == count:
                die()
            return result

        setattr(files.os, name, call)

    return begin


def moment_of(attempt: int, length: float) -> Callable[[], None]:
    if attempt % 2:
        return at_time(length * float(uniform(0, Purpose.BOOTSTRAP, attempt)))
    count, name = 1 + int(integers(5, 0, Purpose.BOOTSTRAP, attempt)), ("fsync", "replace")[attempt // 2 % 2]
    return at_write(count, name, after=attempt % 4 == 0)


def survive(verb: Verb, kills: int, folder: Path) -> None:
    """Kill a run so many times and resume it; one that ends before the moment came is compared, and another begins."""
    (folder / "straight").mkdir(parents=True)
    begun = time.monotonic()
    assert fork(verb.words(folder / "straight")) == 0
    length = time.monotonic() - begun
    straight = verb.left(folder / "straight")
    survived, runs = 0, 1
    for attempt in range(8 * kills):
        killed = folder / f"killed {runs}"
        killed.mkdir(exist_ok=True)
        last = survived == kills
        code = fork(verb.words(killed), *([] if last else [moment_of(attempt, length)]))
        if code == 0:
            assert verb.left(killed) == straight
            if last:
                break
            runs += 1
        else:
            assert code == -signal.SIGKILL
            survived += 1
            verb.whole(killed)
    print(f"\n{survived} kills of {runs} runs that take {length:.1f} s")
    assert survived == kills


@pytest.fixture(scope="module")
def verbs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verb]:
    folder = tmp_path_factory.mktemp("experts")
    experts = ",".join(tiny_experts(folder / "pair"))
    tasks = folder / "tasks.json"
    ids = [f"task {number}" for number in range(12)]
    tasks.write_text(json.dumps({one: spell_task(task(one)) for one in ids}))
    named: list[str] = []
    for seed, name in enumerate((*FULL_FULL.experts, *EARLY.experts)):
        save_expert(build("trans-ir", TINY, seed), folder / name, {"objective": "full"})
        named += ["--expert", f"{name}={folder / name}"]

    def records(place: Path) -> dict[str, Any]:
        found = sorted(place.rglob("*.jsonl.gz"))
        return {
            str(path.relative_to(place)): (read_records(path).header, read_records(path).records)
            for path in found
        }

    def submission(place: Path) -> None:
        if (place / "s.json").exists():
            answered = list(json.loads((place / "s.json").read_text()))
            assert answered == ids[: len(answered)]

    def fitted(place: Path) -> dict[str, Any]:
        report = json.loads((place / "fit" / "report.json").read_text())
        team = json.loads((place / "fit" / "team.json").read_text())
        names = sorted(
            path.name for path in (place / "fit").iterdir() if not path.name.startswith(".writing-")
        )
        return {
            "names": names,
            "report": {key: value for key, value in report.items() if key != "seconds"},
            "team": team,
            "router": (place / "fit" / "model.safetensors").read_bytes(),
        }

    def built(place: Path) -> list[tuple[str, bytes]]:
        return [
            (path.name, path.read_bytes())
            for path in sorted(place.iterdir())
            if not path.name.startswith(".")
        ]

    small = ["--limit", "2", "--steps", "2", "--particles", "2", "--device", "cpu", "--batch", "1"]
    return {
        "solve": Verb(
            lambda place: ["solve", str(tasks), "--experts", experts, "--out", str(place / "s.json")],
            lambda place: (place / "s.json").read_bytes(),
            submission,
        ),
        "eval": Verb(
            lambda place: [
                "eval",
                "--experts",
                experts,
                "--limit",
                "12",
                "--batch",
                "1",
                "--reveal",
                "confidence:3",
                "--out",
                str(place / "r.jsonl.gz"),
            ],
            records,
        ),
        "fit": Verb(
            lambda place: [
                "fit",
                experts,
                "--items",
                "6",
                "--held",
                "3",
                "--steps",
                "60",
                "--reveal",
                "confidence:2",
                "--out",
                str(place / "fit"),
            ],
            fitted,
        ),
        "train": Verb(
            lambda place: [
                "train",
                "tiny",
                "--max-steps",
                "8",
                "--batch",
                "2",
                "--validation-items",
                "2",
                "--refinement",
                "1,1",
                "--network",
                "width=16,context=8,encoder=4,latents=2",
                "--save-seconds",
                "0",
                "--log-every",
                "1",
                "--device",
                "cpu",
                "--resume",
                "--out",
                str(place / "run"),
            ],
            lambda place: (place / "run" / "weights" / "model.safetensors").read_bytes(),
        ),
        "reproduce": Verb(
            lambda place: ["reproduce", "voting", *small, *named, "--only", "vote", "--out", str(place)],
            records,
        ),
        "data build": Verb(
            lambda place: [
                "data",
                "build",
                "--task",
                "67a3c6ac",
                "--workers",
                "1",
                "--out",
                str(place / "one.npz"),
            ],
            built,
        ),
    }


@pytest.fixture(autouse=True)
def as_users_run_it() -> Any:
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("name", ["solve", "eval", "fit"])
def test_two_kills(name: str, verbs: dict[str, Verb], tmp_path: Path) -> None:
    survive(verbs[name], 2, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["solve", "eval", "fit", "train", "reproduce", "data build"])
def test_twenty_kills(name: str, verbs: dict[str, Verb], tmp_path: Path) -> None:
    survive(verbs[name], 20, tmp_path)
