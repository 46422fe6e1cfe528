from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from factordiff.arc.artefact import Artefact, load_artefact, load_manifest
from factordiff.arc.build import rearc, training_only
from factordiff.cli.app import app
from factordiff.cli.data import data
from factordiff.errors import DataError, InvalidInput

run = CliRunner().invoke


def test_verify_rebuilds_a_sample() -> None:
    result = run(data, ["verify", "--sample", "1"])
    assert result.exit_code == 0, result.output
    assert "match the manifest" in result.output
    assert "120 instances rebuilt" in result.output


def test_verify_says_when_the_generators_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    rearc.generators.cache_clear()
    monkeypatch.setattr(metadata, "version", missing)
    result = run(data, ["verify"])
    assert result.exit_code == 0, result.output
    assert "hashes only" in result.output
    assert "factordiff[data]" in result.output


def test_build_writes_a_data_set(tmp_path: Path) -> None:
    out = tmp_path / "small.npz"
    result = run(data, ["build", "--workers", "1", "--task", "8403a5d5", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "1,000 pairs" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.json", "small.npz"]
    again = run(data, ["verify", str(out), "--full", "--workers", "1"])
    assert "everything rebuilt: identical" in again.output


def test_build_wants_an_npz(tmp_path: Path) -> None:
    result = run(data, ["build", "--out", str(tmp_path / "x.json")])
    assert isinstance(result.exception, InvalidInput)


def test_more_writes_a_training_set_apart_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, out = tmp_path / "other.npz", tmp_path / "more.npz"
    one = ["--workers", "1", "--task", "8403a5d5"]
    run(data, ["build", "--seed", "1", "--out", str(other), *one])
    small = Artefact(load_artefact(other).arrays, load_manifest())  # in place of the shipped one: quicker
    monkeypatch.setattr(training_only, "load_artefact", lambda: small)
    few = ["more", "--instances", "30", "--attempts", "300", "--apart-from", str(other), *one]
    result = run(data, [*few, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "30 pairs in" in result.output
    assert len(load_manifest(out)["apart_from"]) == 2
    assert load_manifest(other)["sha256"] in load_manifest(out)["apart_from"]
    assert not (tmp_path / "more.npz.partial").exists()
    verified = run(data, ["verify", str(out), "--sample", "3"])
    assert "3 instances rebuilt, 3 of each task: all identical" in verified.output
    full = run(data, ["verify", str(out), "--full"])
    assert "--full: this file is for training only" in str(full.exception)
    again = run(data, [*few, "--apart-from", str(out), "--out", str(tmp_path / "again.npz")])
    assert f"--apart-from {out}: expected a data set with validation and test instances" in str(
        again.exception
    )


def test_more_refuses_bad_files(tmp_path: Path) -> None:
    result = run(data, ["more", "--out", str(tmp_path / "x.json")])
    assert isinstance(result.exception, InvalidInput)
    result = run(data, ["more", "--apart-from", str(tmp_path / "none.npz"), "--out", str(tmp_path / "x.npz")])
    assert isinstance(result.exception, DataError)
    assert "none.json: the data set's manifest cannot be read" in str(result.exception)


def test_places_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words in (["show", "8403a5d5", "--out", str(tmp_path / "file")], ["measure", "--out", str(tmp_path)]):
        result = run(data, words)
        assert isinstance(result.exception, InvalidInput), result.output
        assert str(result.exception).startswith("--out: ")


def test_show_draws_named_tasks(tmp_path: Path) -> None:
    result = run(data, ["show", "8403a5d5", "27a28665", "--out", str(tmp_path), "--pairs", "3"])
    assert result.exit_code == 0, result.output
    assert "input 0  output" in result.output
    assert "▀" not in result.output, "no colors here, so digits"
    for name in ("8403a5d5", "27a28665"):
        assert Image.open(tmp_path / f"{name}.png").width > 100


def test_show_draws_all_tasks_over_five_pages(tmp_path: Path) -> None:
    result = run(data, ["show", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"tasks-{page}.png" for page in range(1, 6)]


def test_show_knows_its_tasks(tmp_path: Path) -> None:
    result = run(app, ["data", "show", "8403a5d6", "--out", str(tmp_path)])
    assert isinstance(result.exception, InvalidInput)
    assert "did you mean 8403a5d5?" in str(result.exception)
    assert not list(tmp_path.iterdir())
