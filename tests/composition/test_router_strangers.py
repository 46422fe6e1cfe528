"""Routers' folders from strangers: a sentence comes of whatever is in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_store import load_router, save_router
from factordiff.networks.store import CONFIG, MODEL
from tests.hostile import JUNK, MISSING, Change, check_refused, in_json, instead, texts, weight_files

MAY_BE = {
    "model_type": (), "router": (), "router.experts": (), "router.values": (), "router.kind": ("missing",),
    "router.layout": ("missing", "null", "a million"), "router.evidence": ("missing",),
    "router.complement": ("missing", "flag"), "experts": ("list",), "experts.0": (), "experts.0.name": ("text",),
    "experts.0.weights": ("null", "text"), "about": ("missing", "object"),
}  # fmt: skip
OTHER = {
    "router.values": 6, "router.kind": "neighbourhood", "router.evidence": True, "router.bias": True,
    "router.head": "vote", "router.experts": 1, "router.depth": 3, "router.complement": False,
    "router.layout": [2, -2],
}  # fmt: skip


def hostile() -> dict[str, Change]:
    """Every hostile folder by what is wrong with it."""
    found = {
        f"{path} is {name}": in_json(CONFIG, path, value)
        for path, allowed in MAY_BE.items()
        for name, value in JUNK.items()
        if name not in allowed and not (path.endswith(".0") and value is MISSING)
    }
    found |= {f"{path} is {value}": in_json(CONFIG, path, value) for path, value in OTHER.items()}
    found |= {f"{CONFIG} is {name}": instead(CONFIG, text) for name, text in texts().items()}
    return found | {f"{MODEL} is {name}": change for name, change in weight_files(MODEL, "out").items()}


HOSTILE = hostile()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = RouterConfig(2, 5, layout=(2, 3), complement=True)
    router = Router(config, Router.new(config, seed=3).vector, (("a", "1f"), ("b", None)), {"steps": 7})
    folder = tmp_path_factory.mktemp("honest") / "router"
    save_router(router, folder)
    return folder


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 30


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_folder_is_a_sentence(what: str, honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "router"
    shutil.copytree(honest, folder)
    size = (folder / MODEL).stat().st_size
    HOSTILE[what](folder)
    assert str(folder) in check_refused(lambda: load_router(folder), size)


def test_the_folder_itself_is_well(honest: Path) -> None:
    router = load_router(honest)
    assert router.config == RouterConfig(2, 5, layout=(2, 3), complement=True)
    assert router.fitted_to == (("a", "1f"), ("b", None))
    stored = safetensors.torch.load_file(honest / MODEL)
    weights = router.weights(torch.device("cpu"))
    assert stored.keys() == weights.keys()
    assert all(torch.equal(stored[name], weight) for name, weight in weights.items())
