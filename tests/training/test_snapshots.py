"""Weights kept along the way: those of their step, in folders of their own, whatever happens to the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff.experts.registry import SNAPSHOTS, WEIGHTS, find_expert
from factordiff.networks.store import load_expert, read_config
from factordiff.training.machines import Machines
from factordiff.training.provenance import provenance
from tests.training.runs import StopAt, trainer
from tests.training.test_trainer import Elsewhere, poison


def kept(folder: Path) -> dict[int, bytes]:
    """The weight files of a run's snapshots, by step."""
    return {
        int(path.parent.name): path.read_bytes()
        for path in sorted((folder / SNAPSHOTS).glob("*/model.safetensors"))
    }


@pytest.mark.parametrize("fields", [{}, {"ema": 0.0, "backbone": "conv-ir"}])
def test_a_snapshot_is_what_a_run_stopped_there_gives(tmp_path: Path, fields: dict[str, Any]) -> None:
    trainer(tmp_path / "long", snapshot_every=4, **fields).run()
    found = kept(tmp_path / "long")
    assert sorted(found) == [4, 8, 12]
    for step in found:
        stopped = trainer(tmp_path / f"to {step}", observers=(StopAt(step),), **fields)
        stopped.run()
        assert found[step] == (tmp_path / f"to {step}" / WEIGHTS / "model.safetensors").read_bytes()
        folder = tmp_path / "long" / SNAPSHOTS / str(step)
        assert torch.equal(load_expert(folder).vector, stopped.step.ema)
        if "ema" in fields:
            assert torch.equal(load_expert(folder).vector, stopped.step.network.vector)
            assert f"weights of step {step}" in provenance(folder, None)
        assert read_config(folder)["about"]["step"] == step
        assert find_expert(folder).name == f"long-{step}"


@pytest.mark.parametrize("stop", [3, 4, 7])
def test_going_on_changes_no_snapshot(tmp_path: Path, stop: int) -> None:
    trainer(tmp_path / "straight", snapshot_every=4).run()
    trainer(tmp_path / "parts", snapshot_every=4, observers=(StopAt(stop),)).run()
    first = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts" / SNAPSHOTS).glob("*/*")}
    trainer(tmp_path / "parts", resume=True, snapshot_every=4).run()
    assert kept(tmp_path / "parts") == kept(tmp_path / "straight")
    assert all(path.stat().st_mtime_ns == time for path, time in first.items()), "written again"


def test_taking_snapshots_changes_nothing_else(tmp_path: Path) -> None:
    plain, watched = trainer(tmp_path / "plain"), trainer(tmp_path / "watched", snapshot_every=1)
    plain.run()
    watched.run()
    assert torch.equal(plain.step.network.vector, watched.step.network.vector)
    assert not (tmp_path / "plain" / SNAPSHOTS).exists()
    # How often to look is not who is trained.
    assert trainer(tmp_path / "plain", resume=True, max_steps=14, snapshot_every=7).run()["step"] == 14
    assert sorted(kept(tmp_path / "plain")) == [14]


def test_a_snapshot_is_of_its_step_and_not_of_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trainer(tmp_path, max_steps=15, patience=9, snapshot_every=5)
    seen: dict[int, torch.Tensor] = {}

    def worse_and_worse(loss: float) -> float:
        seen[run.done] = run.step.ema.clone()
        return float(run.done)

    monkeypatch.setattr(Machines, "from_first", lambda self, loss: worse_and_worse(loss))
    assert run.run()["weights_of_step"] == 5
    for step in (5, 10, 15):
        assert torch.equal(load_expert(tmp_path / SNAPSHOTS / str(step)).vector, seen[step])
    assert torch.equal(load_expert(tmp_path / WEIGHTS).vector, seen[5])


def test_snapshots_need_no_log_line_and_bring_a_checkpoint(tmp_path: Path) -> None:
    """Where looking means waiting, the loop looks at few steps; and a save may be an hour away."""
    run = trainer(tmp_path, max_steps=7, log_every=50, check_every=50, save_seconds=3600.0, snapshot_every=3)
    run.machines = Elsewhere(rank=0, world=2)
    run.run()
    assert sorted(kept(tmp_path)) == [3, 6]
    steps = sorted(int(path.name.split("-")[1]) for path in tmp_path.glob("checkpoint-*"))
    assert steps == [6, 7]


def test_a_run_that_diverged_leaves_no_snapshot_of_it(tmp_path: Path) -> None:
    run = trainer(tmp_path, max_steps=40, snapshot_every=15)
    poison(run, set(range(5, 40)))
    assert run.run()["diverged"]
    assert kept(tmp_path) == {}
