"""An expert is found by name, by folder and by the run that trained it; one that is not there comes with advice."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.cli.app import app
from factordiff.errors import Unavailable
from factordiff.experiments.pairs import SINGLES
from factordiff.experts import registry
from factordiff.experts.registry import find_expert
from factordiff.networks.store import load_expert
from factordiff.report.records import read_records
from factordiff.team.team import compose
from factordiff.training.settings import PRESETS
from tests.solving_experts import task, tiny_experts
from tests.task_files import write_task


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny_experts(tmp_path / "shipped", ("trans-full",))
    (tiny,) = map(Path, tiny_experts(tmp_path / "made", ("conv-full",)))
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    tiny.rename(tmp_path / "runs" / "mine" / "weights")
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_by_name_by_folder_and_by_run(desk: Path) -> None:
    assert find_expert("trans-full").folder == desk / "shipped" / "trans-full"
    assert find_expert("shipped/trans-full").name == "trans-full"
    for place in ("runs/mine", "runs/mine/", "runs/mine/weights", desk / "runs" / "mine"):
        found = find_expert(place)
        assert (found.name, found.folder.resolve()) == ("mine", desk / "runs" / "mine" / "weights")
    assert compose(["trans-full", "runs/mine"]).names == ("trans-full", "mine")
    assert torch.equal(load_expert("runs/mine").vector, load_expert("runs/mine/weights").vector)


@pytest.mark.parametrize("name", [*SINGLES, "nobody"])
def test_one_that_is_not_there_comes_with_commands_that_make_it(
    name: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SHIPPED", desk / "none")
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


@pytest.mark.parametrize(
    "command",
    [
        "experts conv-full",
        "eval --experts conv-full",
        "bench --experts trans-full,conv-full",
        "reproduce composition --only test.trans-full+conv-full.routing --out records --device cpu",
        "play --experts conv-full",
        "demo --experts trans-full,conv-full",
        "solve task.json --experts conv-full",
    ],
)
def test_every_verb_says_the_same_about_it(command: str, desk: Path) -> None:
    write_task(task(), desk / "task.json")
    with pytest.raises(Unavailable) as refused:
        load_expert("conv-full")
    assert "`factordiff train fast --backbone conv-ir --objective full --out runs/conv-full`" in str(
        refused.value
    )
    told = CliRunner().invoke(app, shlex.split(command)).exception
    assert isinstance(told, Unavailable), repr(told)
    assert str(told) == str(refused.value)


def test_an_evaluation_takes_a_runs_folder(desk: Path) -> None:
    words = [
        "eval",
        "--experts",
        "runs/mine",
        "--limit",
        "1",
        "--reveal",
        "confidence:1",
        "--out",
        "one.jsonl.gz",
    ]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert list(read_records(desk / "one.jsonl.gz").header["weights"]) == ["mine"]
