"""SIGKILL at random moments, half of them inside a save: nothing unreadable, and the same weights at the end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from factordiff.streams import Purpose, integers, uniform
from factordiff.training.checkpoint import latest
from tests.training.killed_run import POINTS
from tests.training.runs import digest, trainer


def start(out: Path, moment: str, steps: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.training.killed_run", str(out), moment, str(steps)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def survive(kills: int, steps: int, out: Path) -> None:
    straight = trainer(max_steps=steps)
    straight.run()
    survived = 0
    for kill in range(kills):
        if kill % 2 == 0:
            # Each step writes three files: the checkpoint and the expert's two.
            count = 1 + int(integers(6, 0, Purpose.BOOTSTRAP, kill))
            moment = f"save:{count}:{POINTS[kill // 2 % len(POINTS)]}"
        else:
            moment = f"time:{0.3 * float(uniform(0, Purpose.BOOTSTRAP, kill)):.3f}"
        ended = start(out, moment, steps)
        if ended.returncode == 0:  # the run was over before the moment came
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        survived += 1
        found = latest(out) if out.is_dir() else None
        assert found is None or found[1] == []  # whatever is there is whole
    assert survived >= min(kills, 3)
    ended = start(out, "never", steps)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == digest(straight)
    assert not list(out.glob(".writing-*"))


def test_three_kills(tmp_path: Path) -> None:
    survive(3, 30, tmp_path / "run")


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    survive(20, 150, tmp_path / "run")
