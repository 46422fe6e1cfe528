"""`factordiff fit` and `factordiff diagnose`, from the words to the folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from factordiff.cli import fitting
from factordiff.cli.app import app
from factordiff.composition.router_store import load_router
from factordiff.errors import InvalidInput
from tests.solving_experts import tiny_experts


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), terminal_width=200)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def experts(tmp_path: Path) -> str:
    return ",".join(tiny_experts(tmp_path / "experts", ("trans-color", "trans-occ")))


FEW = ("--items", "6", "--held", "3", "--steps", "6", "--reveal", "confidence:2", "--device", "cpu")


def test_a_router_is_fitted_kept_and_used(experts: str, tmp_path: Path) -> None:
    out = tmp_path / "router"
    shown = run("fit", experts, *FEW, "--out", str(out))
    assert "head mixture" in shown
    assert "head product" in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "config.json", "model.safetensors", "report.json", "team.json",
    ]  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    assert len(report["trials"]) == 2
    assert load_router(out).fitted_to[0][0] == "trans-color"
    learned = ("--method", "learned", "--router", str(out), "--limit", "2", "--reveal", "confidence:2")
    used = run("eval", "--experts", experts, *learned)
    assert "learned" in used
    with pytest.raises(InvalidInput, match=r"already holds a team\.json; choose another folder"):
        run("fit", experts, *FEW, "--out", str(out))
    others = ",".join(experts.split(",")[::-1])
    with pytest.raises(InvalidInput, match="fitted to trans-color with other weights"):
        run("eval", "--experts", others, *learned)


def test_numbers_are_fitted_and_solve_takes_the_team(experts: str, tmp_path: Path) -> None:
    out = tmp_path / "numbers"
    shown = run("fit", experts, "--method", "mixture", "--budget", "3", *FEW, "--out", str(out))
    assert shown.count("%") >= 6
    team = json.loads((out / "team.json").read_text())
    assert team["method"] == "mixture"


def test_an_interrupted_fit_leaves_a_place_to_go_on_from(
    experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "router"

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "_written", killed)
        with pytest.raises(AssertionError):
            run("fit", experts, *FEW, "--out", str(out))
    assert not (out / "config.json").exists()
    kept = {path.name for path in (out / "fitting").iterdir()}
    assert {"identity.json", "mixture.safetensors", "passes-00000.safetensors"} <= kept
    run("fit", experts, *FEW, "--out", str(out))
    assert (out / "config.json").exists()
    assert not (out / "fitting").exists()


def test_a_diagnosis_is_printed_drawn_and_written(experts: str, tmp_path: Path) -> None:
    picture, numbers = tmp_path / "a.png", tmp_path / "a.json"
    shown = run("diagnose", experts, "--items", "4", "--picture", str(picture), "--out", str(numbers))
    assert "oracle" in shown
    assert "a router" in " ".join(shown.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert json.loads(numbers.read_text())["experts"] == ["trans-color", "trans-occ"]
    with pytest.raises(InvalidInput, match="items: expected at least 2, got 1"):
        run("diagnose", experts, "--items", "1")


def test_data_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "data.safetensors"
    safetensors.torch.save_file({"answers": torch.zeros(4, 100, dtype=torch.int64)}, file)
    with pytest.raises(InvalidInput, match="layout: expected height x width, as 10x10, got 'ten'"):
        run("diagnose", "trans-full,conv-full", "--data", str(file), "--layout", "ten")
    found = fitting._data(file, "10x10")
    assert found is not None
    assert (len(found), found.layout) == (4, (10, 10))
