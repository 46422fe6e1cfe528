"""An expert is found by name, by folder and by the run that trained it; one that is not there comes with advice."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.cli.app import app
from factordiff.errors import Unavailable
from factordiff.experiments.pairs import SINGLES
from factordiff.experts import store
from factordiff.solving.team import compose
from factordiff.solving.whereabouts import WEIGHTS, find_expert
from factordiff.training import run_folder
from factordiff.training.settings import PRESETS
from tests.solving_experts import tiny_experts


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny_experts(tmp_path / "shipped", ("trans-full",))
    (tiny,) = map(Path, tiny_experts(tmp_path / "made", ("conv-full",)))
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    tiny.rename(tmp_path / "runs" / "mine" / "weights")
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_by_name_by_folder_and_by_run(desk: Path) -> None:
    assert find_expert("trans-full").folder == desk / "shipped" / "trans-full"
    assert find_expert("shipped/trans-full").name == "trans-full"
    for place in ("runs/mine", "runs/mine/", "runs/mine/weights", desk / "runs" / "mine"):
        found = find_expert(place)
        assert (found.name, found.folder.resolve()) == ("mine", desk / "runs" / "mine" / "weights")
    assert compose(["trans-full", "runs/mine"]).names == ("trans-full", "mine")


@pytest.mark.parametrize("name", [*SINGLES, "nobody"])
def test_one_that_is_not_there_comes_with_commands_that_make_it(
    name: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SHIPPED", desk / "none")
    with pytest.raises(Unavailable) as refused:
        find_expert(name)
    sentence = str(refused.value)
    assert f"{name!r} is neither a folder nor a shipped expert (shipped: none in this version)" in sentence
    commands = re.findall(r"`factordiff train ([^`]+)`", sentence)
    assert len(commands) == (1 if name == "nobody" else 2)
    known = {option for one in typer.main.get_command(app).commands["train"].params for option in one.opts}
    for command in commands:
        preset, *options = shlex.split(command)
        assert preset in PRESETS
        assert set(options[::2]) <= known
    if name in SINGLES:
        backbone = {"trans": "trans-ir", "conv": "conv-ir"}[name.split("-")[0]]
        objective = {"occ": "occupancy"}.get(name.split("-")[1], name.split("-")[1])
        assert f"--backbone {backbone} --objective {objective} --out runs/{name}" in commands[0]
        assert str(desk / "none" / name) in sentence


def test_a_run_keeps_its_expert_where_it_is_looked_for() -> None:
    assert run_folder.WEIGHTS == WEIGHTS
