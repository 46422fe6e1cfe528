"""The bench prints its table, writes its figures, and draws its curve; with tiny experts and one or two queries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from factordiff.arc.dataset import Dataset
from factordiff.bench.baselines import Bench, fast, noted, straightforward
from factordiff.bench.curve import GRID, REPAIRED, Point, choice, drawn, every_rule
from factordiff.cli import bench as _bench  # noqa: F401
from factordiff.cli.app import app
from factordiff.cli.bench import DEFAULT_RULE
from factordiff.errors import InvalidInput, Unavailable
from factordiff.networks.store import build, load_expert, save_expert, weight_hash
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.rules import reveal_rule

SMALL = {"width": 16, "context": 16, "latents": 2, "encoder": 8, "head": "default", "cycles": [1, 1]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> str:
    base = tmp_path_factory.mktemp("experts")
    for seed in (1, 2):
        save_expert(build("trans-ir", {**SMALL, "heads": 2}, seed), base / str(seed), {"objective": "full"})
    return f"{base / '1'},{base / '2'}"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["bench", "--device", "cpu", "--steps", "5", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_table_and_its_file(folders: str, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "bench.json"
    text = run("--quick", "--experts", folders, "--limit", "2", "--rule", "margin:0", "--out", str(out))
    found = json.loads(out.read_text())
    whats = [figure["what"] for figure in found["figures"]]
    assert whats == [
        "routing + reveal",
        "path evidence",
        "a learned router",
        "faster for one query",
        "rows executed / needed",
        "faster per grid",
        "fewer passes per grid",
    ]
    assert "margin" in text
    assert [path.name for path in out.parent.iterdir()] == ["bench.json"]
    begun = list(found["begun_at_seconds"].values())
    assert begun == sorted(begun)
    assert next(iter(found["begun_at_seconds"])) == "warming up"
    assert found["about"]["queries"] == 2
    assert found["about"]["weights"] == [weight_hash(folder) for folder in folders.split(",")]
    assert len(found["about"]["data"]) == 64
    passes = found["figures"][6]
    assert passes["value"] == pytest.approx(10 / passes["details"]["passes_per_grid"])
    assert found["figures"][4]["value"] == 1.0  # nothing is filled up on a CPU


def test_what_the_savings_alone_change_is_counted_and_traced(folders: str, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    run("--quick", "--experts", folders, "--limit", "3", "--slow-limit", "2", "--out", str(out))
    figures = {figure["what"]: figure for figure in json.loads(out.read_text())["figures"]}
    for what, queries in (
        ("same answers with the savings alone", 3),
        ("same answers, other kernels too", 2),
    ):
        details = figures[what]["details"]
        assert details["queries"] == queries
        assert details["differing"] == details["traced_to_a_near_tie"]


def test_the_straightforward_loop_gives_the_loops_answers(folders: str) -> None:
    networks = [load_expert(folder) for folder in folders.split(",")]
    bench = Bench(
        networks, Dataset.load("cpu").evaluation("validation", 3), ByConfidence(5), 2, 3, 0, steps=5
    )
    plain = straightforward(bench)
    assert torch.equal(plain.x_0, fast(bench, networks).x_0)
    for saving in (True, False):
        course = noted(bench, networks, saving=saving)
        assert torch.equal(plain.x_0, course.x_0)
        assert torch.equal(plain.step, course.step)


def test_the_curve_is_drawn(folders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factordiff.bench.curve.GRID", {"margin": (0.0, 0.001), "confidence": (1, 4)})
    monkeypatch.setattr("factordiff.bench.curve.REPAIRED", (0.002,))
    picture, out = tmp_path / "curve.png", tmp_path / "curve.json"
    monkeypatch.setattr("factordiff.bench.curve.LOOP", "confidence:4")
    shown = run(
        "--quick",
        "--experts",
        folders,
        "--limit",
        "1",
        "--rounds",
        "2",
        "--split",
        "validation",
        "--rule",
        "margin:0.01",
        "--curve",
        str(picture),
        "--out",
        str(out),
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    about = json.loads(out.read_text())["about"]
    assert (about["queries"], about["rounds"]) == (2, 2)
    points = [Point(**point) for point in json.loads(out.read_text())["points"]]
    assert [point.rule for point in points] == [
        "confidence:4",
        "margin:0",
        "margin:0.001",
        "confidence:1",
        "margin:0.002+repair:0.002",
        "margin:0.01",
    ]
    assert [point.passes for point in points if point.family == "confidence"] == [8, 2]
    assert points[0].equal, "the loop is as good as itself"
    best = choice(points)
    told = (
        f"quality of confidence:4, half of what is allowed to spare: {best.rule} ({best.passes:.2f} a grid)"
    )
    assert told in " ".join(shown.split())


def test_the_rule_of_the_bench_is_the_rule_of_the_solver() -> None:
    assert reveal_rule(DEFAULT_RULE) == reveal_rule("fast")


def test_every_rule_of_the_grid_exists() -> None:
    assert len(every_rule()) == sum(map(len, GRID.values())) + len(REPAIRED)
    assert Point("margin:0.8+repair:0.5", 1.0, 1.0, 1.0).family == "margin+repair"
    for rule in every_rule():
        reveal_rule(rule)
    assert drawn([Point("margin:0.9", 0.5, 0.9, 10.0)], "margin:0.9", "one point").startswith(b"\x89PNG")


def test_bad_arguments_are_named(folders: str) -> None:
    with pytest.raises(InvalidInput, match="reveal: expected fast, exact, or one of"):
        run("--experts", folders, "--rule", "slow")
    with pytest.raises(InvalidInput, match="threshold: expected a number from 0 to 1, got 2"):
        run("--experts", folders, "--rule", "margin:2")
    with pytest.raises(InvalidInput, match="limit: expected at least 1, got 0"):
        run("--experts", folders, "--limit", "0")
    with pytest.raises(InvalidInput, match="batch: expected"):
        run("--experts", folders, "--batch", "-1")
    for option in ("--out", "--curve"):
        with pytest.raises(InvalidInput, match=f"{option}: . is a folder"):
            run("--experts", folders, option, ".")
    with pytest.raises(InvalidInput, match="experts: expected at least one"):
        run("--experts", ",")
    with pytest.raises(Unavailable, match="expert: 'nobody'"):
        run("--experts", "nobody")
