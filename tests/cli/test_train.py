"""`factordiff train`: from the command to the summary, and every refusal as one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.cli.train import _settings
from factordiff.errors import CheckpointError, FactorDiffError, InvalidInput, Unavailable
from factordiff.networks.store import load_expert, read_config
from factordiff.training.checkpoint import latest
from factordiff.training.log import read_log
from factordiff.training.provenance import command
from factordiff.training.settings import preset
from factordiff.training.step import Loss

SMALL = [
    "--batch",
    "2",
    "--validation-items",
    "2",
    "--device",
    "cpu",
    "--log-every",
    "1",
    "--refinement",
    "1,1",
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["train", *arguments])


def test_train_stop_and_go_on(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    schedule = ["--decay-from", "2", "--out", out]
    first = run("tiny", *SMALL, *schedule, "--max-steps", "2")
    assert first.exit_code == 0, first.output
    last = first.output.strip().splitlines()[-1]
    assert last.startswith("trans-ir full: step 2 (the last step)")
    assert "exact" in last
    assert last.endswith(f"weights in {out}/weights")
    with pytest.raises(CheckpointError, match="continue it with --resume"):
        raise run("tiny", *SMALL, *schedule, "--max-steps", "3").exception
    more = run("tiny", *SMALL, *schedule, "--max-steps", "3", "--resume")
    assert more.exit_code == 0, more.output
    assert "step 3 (the last step)" in more.output.strip().splitlines()[-1]
    assert read_config(f"{out}/weights")["about"]["step"] == 3
    assert load_expert(f"{out}/weights").cycles == (1, 1)
    with pytest.raises(CheckpointError, match="the checkpoint has seed = 0, this run 1"):
        raise run("tiny", *SMALL, *schedule, "--max-steps", "4", "--resume", "--seed", "1").exception


def test_a_termination_ends_it_well(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "factordiff",
            "train",
            "tiny",
            *SMALL,
            "--backbone",
            "conv-ir",
            "--objective",
            "color",
            "--out",
            str(out),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and '"log"' not in _text(out / "log.jsonl"):
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    last = printed.strip().splitlines()[-1]
    assert last.startswith("conv-ir color: step ")
    assert "(SIGTERM)" in last
    assert "color given foreground" in last
    events = [json.loads(line) for line in _text(out / "log.jsonl").splitlines()]
    assert events[-1]["stopped_by"] == "SIGTERM"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["huge"], "preset: expected one of paper, fast, tiny, sequence, got 'huge'"),
        (["tiny", "--objective", "shape"], "objective: expected one of full, occupancy, color, got 'shape'"),
        (
            ["tiny", "--backbone", "mlp"],
            "backbone: expected one of trans-ir, conv-ir, transformer, got 'mlp'",
        ),
        (["tiny", "--device", "tpu"], "device: expected one of auto, cpu, cuda, mps, got 'tpu'"),
        (["tiny", "--refinement", "2"], "--refinement: expected H,L such as 2,2, got '2'"),
        (["tiny", "--max-minutes", "nan"], "--max-minutes: expected a finite positive number, got nan"),
        (["tiny", "--max-minutes", "0"], "--max-minutes: expected a finite positive number, got 0.0"),
    ],
)
def test_refusals(arguments: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(FactorDiffError) as refused:
        raise run(*arguments, "--out", str(tmp_path / "run")).exception
    assert str(refused.value).startswith(said)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_no_gpu_where_one_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cuda was asked for, but this machine has none"):
        raise run("tiny", "--device", "cuda", "--out", str(tmp_path / "run")).exception


def test_settings_from_the_command() -> None:
    assert _settings("fast", {}, {}) == preset("fast")
    changed = _settings("fast", {"max_steps": 9000, "warmup": 100}, {"conditioning": "paper"})
    assert (changed.max_steps, changed.warmup, changed.decay_from) == (9000, 100, 100)
    assert changed.network["conditioning"] == "paper"
    # The paper's rate does not decay, however long the run.
    assert _settings("paper", {"max_steps": 100}, {}).decay_from == 100
    assert _settings("fast", {"frames": 5}, {}).min_frames == 5


@pytest.mark.parametrize("backbone", ["trans-ir", "conv-ir"])
def test_the_papers_own_with_snapshots(backbone: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    steps = ["--max-steps", "2", "--snapshot-every", "1", "--out", str(out)]
    ended = run("paper", *SMALL, "--backbone", backbone, *steps)
    assert ended.exit_code == 0, ended.output
    for step in (1, 2):
        config = read_config(out / "snapshots" / str(step))
        assert (config["network"]["literal"], config["about"]["step"]) == (True, step)
        assert "--literal" not in command(config), "the preset has it"
    assert torch.equal(load_expert(out / "weights").vector, load_expert(out / "snapshots" / "2").vector)
    ours = {**config["about"]["settings"], "network": {"conditioning": "paper", "literal": False}}
    assert "--no-literal" in command({**config, "about": {"settings": ours}})


def test_tasks_from_the_command(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    two = ["--tasks", "c8f0f002,0d3d703e", "--out", out]
    assert run("tiny", *SMALL, *two, "--max-steps", "1").exit_code == 0
    assert read_config(f"{out}/weights")["about"]["settings"]["tasks"] == ["c8f0f002", "0d3d703e"]
    for other in ("c8f0f002", "all"):
        with pytest.raises(CheckpointError, match="the checkpoint has tasks = "):
            raise run(
                "tiny", *SMALL, "--tasks", other, "--out", out, "--max-steps", "1", "--resume"
            ).exception
    with pytest.raises(InvalidInput, match="tasks: the data set has no 67a3c6ad; expected ids such as"):
        raise run("tiny", "--tasks", "67a3c6ac,67a3c6ad", "--out", str(tmp_path / "other")).exception
    assert not (tmp_path / "other").exists()


def test_non_finite_steps_have_an_exit_code_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, plain = 0, Loss.forward

    def poisoned(self: Loss, *batch: torch.Tensor) -> torch.Tensor:
        nonlocal steps
        steps += 1
        return plain(self, *batch) * (1.0 if steps <= 2 else torch.nan)

    monkeypatch.setattr(Loss, "forward", poisoned)
    out = tmp_path / "run"
    ended = run("tiny", *SMALL, "--out", str(out))
    assert ended.exit_code == 3
    assert "3 ten losses or gradients in a row were not finite" in " ".join(run("--help").output.split())
    assert (
        f"error: stopped at step 12 by 10 non-finite losses or gradients in a row; the checkpoint and the "
        f"weights in {out} are those from before them" in ended.stderr
    )
    assert ended.stdout.strip().splitlines()[-1].startswith("trans-ir full: step 12 (10 non-finite")
    found = latest(out)
    assert found is not None
    assert int(found[0].tensors["updates"]) == 2
    assert torch.equal(load_expert(out / "weights").vector, found[0].tensors["ema"])


def test_emphasis_from_the_command(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    given = ["--tasks", "c8f0f002,0d3d703e", "--emphasis", "0d3d703e=3", "--out", out]
    assert run("tiny", *SMALL, *given, "--max-steps", "1").exit_code == 0
    config = read_config(f"{out}/weights")
    assert config["about"]["settings"]["emphasis"] == {"0d3d703e": 3}
    assert "--emphasis 0d3d703e=3" in command(config)
    for wrong in ("0d3d703e", "0d3d703e=two", "=", "0d3d703e=1=2"):
        with pytest.raises(InvalidInput, match="--emphasis: expected ID=TIMES"):
            raise run("tiny", "--emphasis", wrong, "--out", str(tmp_path / "other")).exception


@pytest.mark.slow
def test_the_laptop_preset_learns_its_tasks(tmp_path: Path) -> None:
    """A third of its steps are enough for half of the held-out instances."""
    steps = preset("tiny").max_steps // 3
    ended = run("tiny", "--device", "cpu", "--max-steps", str(steps), "--out", str(tmp_path / "run"))
    assert ended.exit_code == 0, ended.output
    summary = read_log(tmp_path / "run" / "log.jsonl")[-1]
    assert len(preset("tiny").tasks or ()) == 8
    assert preset("tiny").validation_items == 8 * 40  # all that are held out
    assert summary["decoded_exact"] >= 0.5


def test_data_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.chdir(tmp_path)
    rows = (np.arange(20)[:, None] + np.arange(12)) % 5
    np.savez("rows.npz", train=rows, validation=rows[:4])
    words = ["sequence", "--source", "rows.npz", "--network", "width=16,blocks=1,heads=2", "--batch", "4"]
    done = run(*words, "--max-steps", "2", "--device", "cpu")
    assert done.exit_code == 0, done.output
    last = done.output.strip().splitlines()[-1]
    assert "bits per cell and" in last
    assert last.endswith("weights in runs/sequence-transformer-full/weights")
    config = read_config("runs/sequence-transformer-full/weights")
    assert config["network"] == {
        "values": 5, "length": 12, "width": 16, "blocks": 1, "heads": 2, "expansion": 4,
    }  # fmt: skip
    again = command(config)
    assert again == (
        "factordiff train sequence --source rows.npz --network width=16,blocks=1,heads=2 --batch 4 --max-steps 2"
    )
    np.savez("rows.npz", train=rows[::-1], validation=rows[:4])
    with pytest.raises(CheckpointError, match="the checkpoint has data = "):
        raise run(*words, "--max-steps", "3", "--device", "cpu", "--resume").exception


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sequence"], "--source: the preset sequence needs one"),
        (["sequence", "--source", "none.npz"], "none.npz: cannot be read as a file of arrays"),
        (["sequence", "--source", "rows.csv"], "source: expected module:Class"),
        (
            ["sequence", "--source", "x.npz", "--more-data", "m.npz"],
            "--more-data: it goes with the RE-ARC data set",
        ),
        (["tiny", "--network", "width"], "--network: expected NAME=VALUE,NAME=VALUE such as width=64"),
        (["tiny", "--network", "depth=3"], "network: trans-ir has no setting depth"),
        (["tiny", "--backbone", "transformer"], "network: transformer has no setting context, cycles"),
    ],
)
def test_sources_that_are_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(FactorDiffError) as refused:
        raise run(*arguments, "--device", "cpu", "--out", str(tmp_path / "run")).exception
    assert str(refused.value).startswith(said)


def test_a_run_that_diverges_says_so_and_keeps_no_weights_that_are_not_finite(tmp_path: Path) -> None:
    out = tmp_path / "run"
    network = [
        "--network",
        "width=16,context=8,encoder=4,latents=2",
        "--save-seconds",
        "0",
        "--check-every",
        "5",
    ]
    rates = ["--warmup", "1", "--lr", "1e30", "--lr-rest", "1e30", "--max-steps", "60"]
    ended = run("tiny", *SMALL, *network, *rates, "--out", str(out))
    assert ended.exit_code == 3, (ended.output, ended.exception)
    assert "non-finite losses or gradients in a row" in " ".join(ended.stderr.split())
    if (out / "weights").exists():
        assert bool(load_expert(out / "weights").vector.isfinite().all())
