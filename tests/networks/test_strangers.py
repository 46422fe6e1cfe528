"""Experts' folders from strangers: whatever is in them, a sentence comes of it, soon and in little memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from factordiff.errors import CheckpointError
from factordiff.experts.registry import SHIPPED, shipped_experts
from factordiff.networks.store import CONFIG, MODEL, load_expert, read_config, save_expert
from tests.hostile import JUNK, MISSING, Change, check_refused, in_json, instead, texts, weight_files
from tests.networks.small_networks import small

# What of JUNK a field may be, after all.
WHOLE = ("missing",)
FLAG = ("missing", "flag")
MAY_BE = {
    "network.values": WHOLE, "network.layout": WHOLE, "network.width": (), "network.heads": WHOLE,
    "network.cycles": WHOLE, "network.field": FLAG, "network.conditioning": WHOLE, "network.head": WHOLE,
    "network.sees_sizes": FLAG, "network.blocks": WHOLE, "network.rotary": ("missing", "null", "flag"),
    "network.pair_patch": WHOLE, "backbone": (), "network": (), "parameters": WHOLE,
    "about": ("missing", "object"), "about.objective": WHOLE, "about.settings": ("missing", "object"),
    "about.started_from": ("missing",), "about.step": ("missing", "zero", "huge"),
}  # fmt: skip


def contradictions() -> dict[str, Change]:
    """Configurations that are well-formed, and of another network than the weights."""
    changes: dict[str, Any] = {
        "network.width": 64, "network.values": 11, "network.heads": 8, "network.blocks": 3, "network.context": 23,
        "network.latents": 17, "network.encoder": 9, "network.expansion": 3, "network.conditioning": "paper",
        "network.positions": "learned", "network.field": False, "network.pair_patch": 1, "network.literal": True,
        "network.width ": 32, "network.\x1b[2J": 1, "network." + "x" * 5_000: 1,
        "backbone": "conv-ir", "parameters": 1, "network.rotary": 0,
    }  # fmt: skip
    large = {
        "network.width": 16_384,
        "network.blocks": 512,
        "network.values": 1_000_000,
        "network.expansion": 64,
    }
    bounds = {
        "network.layout": [1_024, 1_024], "network.pair_patch": 10**6, "network.slots": 10**9,
        "network.heads": 3, "network.width": 33, "network.latents": -5, "network.encoder": 0,
        "network.cycles": [65, 1], "network.positions": "fourier", "backbone": "mlp", "model_type": "bert",
    }  # fmt: skip
    return {
        **{f"{path[:30]!r} is {value}": in_json(CONFIG, path, value) for path, value in changes.items()},
        **{f"{path} is as large as may be": in_json(CONFIG, path, value) for path, value in large.items()},
        **{f"{path} is {value}": in_json(CONFIG, path, value) for path, value in bounds.items()},
    }


def hostile() -> dict[str, Change]:
    """Every hostile folder by what is wrong with it."""
    found: dict[str, Change] = {}
    for path, allowed in MAY_BE.items():
        for name, value in JUNK.items():
            if name not in allowed:
                found[f"{path} is {name}"] = in_json(CONFIG, path, value)
    found |= {f"{CONFIG} is {name}": instead(CONFIG, text) for name, text in texts().items()}
    found |= {f"{MODEL} is {name}": change for name, change in weight_files(MODEL, "head.weight").items()}
    found |= contradictions()
    return found


HOSTILE = hostile()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    about = {"objective": "full", "step": 3, "settings": {"preset": "tiny"}}
    about["started_from"] = {"weights": "0" * 64, "about": {"objective": "full"}}
    return save_expert(small("trans-ir"), tmp_path_factory.mktemp("honest") / "expert", about)


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 80


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_folder_is_a_sentence(what: str, honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "expert"
    shutil.copytree(honest, folder)
    size = (folder / MODEL).stat().st_size
    HOSTILE[what](folder)
    sentence = check_refused(lambda: load_expert(folder), size)
    assert str(folder) in sentence


def test_the_folder_itself_is_well(honest: Path) -> None:
    """And so are its copies before anything is changed: what is refused is refused for what was changed."""
    expert = load_expert(honest)
    stored = safetensors.torch.load_file(honest / MODEL)
    assert all(torch.equal(weight, stored[name]) for name, weight in expert.named_weights().items())


@pytest.mark.parametrize("path", [path for path, allowed in MAY_BE.items() if "missing" in allowed])
def test_what_may_be_missing_is_not_missed(path: str, honest: Path, tmp_path: Path) -> None:
    """Weights of before lack what came later: the default is what they were made with."""
    shutil.copytree(honest, tmp_path / "expert")
    in_json(CONFIG, path, MISSING)(tmp_path / "expert")
    assert torch.equal(load_expert(tmp_path / "expert").vector, load_expert(honest).vector)


def nested(depth: int) -> dict[str, Any]:
    about: dict[str, Any] = {}
    for _ in range(depth):
        about = {"started_from": {"weights": "", "about": about}}
    return about


def test_a_long_ancestry_is_refused_and_a_short_one_read(honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest, tmp_path / "expert")
    in_json(CONFIG, "about", nested(20))(tmp_path / "expert")
    assert read_config(tmp_path / "expert")["about"] == nested(20)
    in_json(CONFIG, "about", nested(200))(tmp_path / "expert")
    with pytest.raises(CheckpointError, match="at most 50 started_from inside one another"):
        read_config(tmp_path / "expert")


@pytest.mark.parametrize("name", shipped_experts())
def test_shipped_weights_are_loaded_bit_for_bit(name: str) -> None:
    stored = safetensors.torch.load_file(SHIPPED / name / MODEL)
    loaded = load_expert(name).named_weights()
    assert stored.keys() == loaded.keys()
    assert all(torch.equal(weight, stored[name].float()) for name, weight in loaded.items())
