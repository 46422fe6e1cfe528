"""Teams from strangers: a file becomes a team that answers, or a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff import compose
from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_store import save_router
from factordiff.solving.solver import solve
from tests.hostile import JUNK, MISSING, Change, check_refused, in_json, instead, texts
from tests.solving_experts import task, tiny_experts

TEAM = "team.json"
MAY_BE = {
    "version": (), "experts": (), "experts.0": (), "experts.0.name": ("text",), "experts.0.expert": (),
    "experts.0.weights": ("missing", "null"), "method": (), "options": (),
    "options.temperatures": ("missing", "null", "a million"), "options.factors": ("missing",),
    "reveal": (), "layout": ("null",),
}  # fmt: skip
OTHER: dict[str, Any] = {
    "version": 2, "method": "magic", "reveal": "slow", "options.device": "cpu", "options.engine": 1,
    "options.experts": ["a"], "options.method": "mixture", "options.objectives": ["full", "full"],
    "options.temperatures": [1, 10**4_000], "options.beta": [1, 1], "options.factors": "block:0x0",
    "experts.0.expert": "x" * 3_000, "experts.1.name": "trans-full", "experts.0.weights": "0" * 64, "more": 1,
    "experts.0.more": 1, "layout": [10, 10, 10],
}  # fmt: skip
OF_A_ROUTER: dict[str, Any] = {
    "options.router": "router", "options.router.folder": "nowhere", "options.router.weights": "0" * 64,
    "options.router.more": 1, "options.other_experts": "perhaps",
}  # fmt: skip
ZERO_BYTE = {"experts.0.expert": "a\0b", "experts.1.expert": "a/\0", "reveal": "\0"}
REVEALS = (
    "confidence:0", "confidence:-1", "confidence:nan", "margin:nan", "margin:2", "margin:1e999", "entropy:-1",
    "product:x", "block:0x0", "block:2", "margin:0.9+repair:nan", "fast+repair:0.5", "margin:" + "9" * 500,
)  # fmt: skip


def hostile() -> dict[str, Change]:
    """Every hostile file by what is wrong with it."""
    found = {
        f"{path} is {name}": in_json(TEAM, path, value)
        for path, allowed in MAY_BE.items()
        for name, value in JUNK.items()
        if name not in allowed and not (path.endswith(".0") and value is MISSING)
    }
    found |= {f"{path} is {str(value)[:20]}": in_json(TEAM, path, value) for path, value in OTHER.items()}
    found |= {f"{path} has a zero byte": in_json(TEAM, path, value) for path, value in ZERO_BYTE.items()}
    found |= {f"reveal is {rule[:30]}": in_json(TEAM, "reveal", rule) for rule in REVEALS}
    return found | {f"it is {name}": instead(TEAM, text) for name, text in texts().items()}


HOSTILE = hostile()


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return tiny_experts(tmp_path_factory.mktemp("experts"))


def saved(experts: list[str], folder: Path) -> Path:
    team = compose(experts, layout=(10, 10), temperatures=[1.0, 0.5], factors="block:2x2")
    return team.save(folder / TEAM)


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 30


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_a_sentence(what: str, experts: list[str], tmp_path: Path) -> None:
    file = saved(experts, tmp_path)
    HOSTILE[what](tmp_path)
    check_refused(lambda: compose(file), 10**5)


@pytest.mark.parametrize("what", OF_A_ROUTER)
def test_a_hostile_router_in_a_team_is_a_sentence(what: str, experts: list[str], tmp_path: Path) -> None:
    save_router(Router.new(RouterConfig(2, 10, layout=(10, 10))), tmp_path / "router")
    file = compose(experts, "learned", router=tmp_path / "router", layout=(10, 10)).save(tmp_path / TEAM)
    assert json.loads(file.read_text())["options"]["router"]["folder"] == "router"
    assert compose(file).method == "learned"
    in_json(TEAM, what, OF_A_ROUTER[what])(tmp_path)
    check_refused(lambda: compose(file), 10**5)


def test_the_file_itself_is_well(experts: list[str], tmp_path: Path) -> None:
    team = compose(saved(experts, tmp_path))
    assert team.options == {"temperatures": (1.0, 0.5), "factors": "block:2x2"}
    assert solve(task(), team)[0].grid is not None
    assert torch.equal(
        team.members[0].expert.vector,  # type: ignore[attr-defined]
        compose(experts).members[0].expert.vector,  # type: ignore[attr-defined]
    )


def test_names_that_would_steer_a_terminal_are_escaped(experts: list[str], tmp_path: Path) -> None:
    steering = "\x1b]0;mine\x07\x1b[31mred"
    team = compose({steering: experts[0], "other": experts[1]})
    assert team.names == (r"\x1b]0;mine\x07\x1b[31mred", "other")
    assert "\x1b" not in repr(team)
    team.save(tmp_path / TEAM)
    written = json.loads((tmp_path / TEAM).read_text())
    written["experts"][0]["name"] = steering
    (tmp_path / TEAM).write_text(json.dumps(written))
    assert compose(tmp_path / TEAM).names == team.names
    folder = tmp_path / "\x1b[31mred"
    shutil.copytree(experts[0], folder)
    assert compose([folder, experts[1]]).names[0] == r"\x1b[31mred"
