"""SIGKILL at random moments, half of them inside a save: nothing unreadable, and the same weights at the end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from factordiff.networks.store import load_expert
from factordiff.streams import Purpose, integers, uniform
from factordiff.training.checkpoint import latest
from factordiff.training.log import read_log
from tests.training.killed_run import POINTS
from tests.training.runs import digest, trainer


def start(out: Path, moment: str, steps: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.training.killed_run", str(out), moment, str(steps)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def as_bytes(vector: torch.Tensor) -> bytes:
    return vector.detach().numpy().tobytes()


def survive(kills: int, steps: int, out: Path) -> None:
    averages: dict[bytes, int] = {}
    straight = trainer(max_steps=steps)
    straight.observers = (lambda event: averages.setdefault(as_bytes(straight.step.ema), event["step"]),)
    straight.run()
    survived = 0
    for kill in range(kills):
        if kill % 2 == 0:
            # Each step writes three files: the expert's two and the checkpoint.
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
        if found is not None:
            assert found[1] == []  # whatever is there is whole
            # The weights for users are there too: those of the checkpoint, or of the save that was under way.
            exported = averages[as_bytes(load_expert(out / "weights").vector)]
            assert exported - int(found[0].tensors["step"]) in (0, 1)
            assert max(event["step"] for event in read_log(out / "log.jsonl")) >= found[0].tensors["step"]
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
