"""The experts that come with the package: small, quick to load, and as good as their cards say."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from typer.testing import CliRunner

from benchmarks.publish_report import TRACKED
from factordiff import load_expert
from factordiff.arc.dataset import Dataset
from factordiff.cli.app import app
from factordiff.experts.registry import SHIPPED, shipped_experts
from factordiff.networks.store import MODEL, read_config, weight_hash
from factordiff.report.card import Figures, read_figures
from factordiff.report.outcomes import read_outcomes
from factordiff.report.records import read_records

ROOT = Path(__file__).parents[1]
EXPERTS = shipped_experts()
REMEASURED = ("trans-full", "conv-full")
FIRST = 24


def figures(name: str) -> Figures:
    """What is recorded beside the weights."""
    found = read_figures(SHIPPED / name)
    assert found is not None, f"{name} has no figures.json"
    return found


@pytest.mark.parametrize("name", EXPERTS)
def test_an_expert_is_a_million_parameters_that_load_in_two_seconds(name: str) -> None:
    began = time.perf_counter()
    network = load_expert(name)
    assert time.perf_counter() - began < 2.0
    assert 900_000 <= network.layout.count <= 1_100_000
    assert read_config(SHIPPED / name)["parameters"] == network.layout.count


@pytest.mark.parametrize("name", EXPERTS)
def test_the_figures_are_of_these_weights(name: str) -> None:
    found = figures(name)
    assert found.weights == weight_hash(SHIPPED / name)
    assert found.data == read_config(SHIPPED / name)["about"]["data"]
    for figure in found.measured:
        assert figure.right().mean() == pytest.approx(figure.exact)
        assert f"{100 * figure.exact:.2f} [" in (SHIPPED / name / "README.md").read_text()
        assert figure.cropped is None or figure.cropped >= figure.exact


def test_weights_are_stored_once_in_bfloat16() -> None:
    """2 MB each; what was replaced is gone: every file of weights that is tracked is an expert's or a router's."""
    names = [*EXPERTS, *shipped_experts(of_text=True)]
    files = {SHIPPED / name / MODEL for name in names}
    for file in files:
        with safe_open(file, "pt") as weights:
            assert {weights.get_slice(name).get_dtype() for name in weights.keys()} == {"BF16"}, file  # noqa: SIM118
        assert file.stat().st_size < 2.5e6
    assert len({weight_hash(file.parent) for file in files}) == len(files)
    routers = set((SHIPPED / "routers").rglob(MODEL))
    assert set((ROOT / "src").rglob("*.safetensors")) == files | routers


def test_the_package_stays_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 44e6


def test_the_tracked_files_stay_small() -> None:
    """Above this they no longer travel whole to a machine with a GPU, and a clone takes its time."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: nothing is tracked")
    tracked = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    assert sum(path.stat().st_size for path in tracked if path.is_file()) < TRACKED


@pytest.mark.parametrize("name", ["trans-full", "conv-full"])
def test_the_answer_changes_with_the_size_that_is_told(name: str) -> None:
    """Where the last row of an input is all 0, the canvas alone does not tell where the grid ends."""
    network, queries = load_expert(name), Dataset.load().evaluation("validation")
    hidden = [index for index in range(600) if not queries.query(index)[0][-1].any()][:16]
    assert len(hidden) == 16
    told = queries.condition(torch.tensor(hidden))
    assert told.inside is not None
    lied = dataclasses.replace(told, inside=told.inside._replace(query=torch.ones_like(told.inside.query)))
    answers = [
        network.log_probs(torch.full((16, 100), 10), network.encode(one)).argmax(-1) for one in (told, lied)
    ]
    truth = queries.x_0[hidden]
    right, wrong = ((answer == truth).all(1).sum() for answer in answers)
    assert right >= 12
    assert wrong < right


@pytest.mark.parametrize("name", [name for name in REMEASURED if name in EXPERTS])
def test_the_first_queries_come_out_as_recorded(name: str, tmp_path: Path) -> None:
    """In float32 on this CPU, where the record is of a GPU in bfloat16: a near-tie may turn one answer."""
    recorded = figures(name).find("test") or figures(name).find("validation")
    assert recorded is not None
    out = tmp_path / "first.jsonl.gz"
    words = ["eval", "--experts", name, "--split", recorded.split, "--limit", str(FIRST), "--device", "cpu"]
    CliRunner().invoke(app, [*words, "--out", str(out)], catch_exceptions=False)
    found = read_outcomes(read_records(out))
    assert found is not None
    assert len(found) == FIRST
    assert int(np.sum(found.exact != recorded.right()[:FIRST])) <= 1


def test_the_list_of_experts_shows_the_figures_that_were_measured() -> None:
    shown = CliRunner().invoke(app, ["experts"], env={"COLUMNS": "120"}, catch_exceptions=False).output
    for name in EXPERTS:
        (line,) = (line for line in shown.splitlines() if line.strip().startswith(f"{name} "))
        found, own = figures(name), read_config(SHIPPED / name)["about"]["objective"]
        wanted = [
            found.find("validation"),
            found.find("test"),
            found.find("test", own) or found.find("validation", own),
        ]
        for figure in filter(None, wanted):
            assert f"{100 * figure.exact:.1f} %" in line, (name, figure.split, figure.question)
