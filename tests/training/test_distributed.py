"""Any number of machines trains the same expert."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from factordiff.networks.store import load_expert
from factordiff.training.log import read_log


def launch(out: Path, world: int, stop: int = 0) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    command += ["-m", "tests.training.distributed_run", str(out), str(stop)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("worlds", [(1, 3), pytest.param((1, 2, 4), marks=pytest.mark.slow)])
def test_world_sizes_agree(worlds: tuple[int, ...], tmp_path: Path) -> None:
    """The batch of ten divides unevenly among three and four; Newton-Schulz in float32; demonstrations must agree."""
    vectors, losses = {}, {}
    for world in worlds:
        if world == 2:  # stopped and continued half-way, besides
            launch(tmp_path / str(world), world, stop=40)
        launch(tmp_path / str(world), world)
        vectors[world] = load_expert(tmp_path / str(world) / f"weights-{world}").vector
        events = read_log(tmp_path / str(world) / "run" / "log.jsonl")
        logged = {event["step"]: event["loss"] for event in events if event["event"] == "log"}
        assert list(logged) == [20, 40, 60, 80, 100]  # one process writes
        losses[world] = list(logged.values())
    for world in worlds[1:]:
        difference = (vectors[world] - vectors[1]).norm() / vectors[1].norm()
        assert 0.0 <= float(difference) < 1e-4
        assert losses[world] == pytest.approx(losses[1], rel=1e-4)
    assert not torch.equal(vectors[1], torch.zeros_like(vectors[1]))
