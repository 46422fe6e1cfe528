"""Experts as folders: exact round trips, a fresh process, clear refusals, and a hub that is a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from factordiff.errors import CheckpointError, Unavailable
from factordiff.networks import store
from factordiff.networks.store import (
    build,
    load_expert,
    load_weights,
    pull_expert,
    push_expert,
    read_config,
    save_expert,
    weight_hash,
)
from tests.networks.small_networks import BACKBONES, CONDITIONINGS, condition, partly_masked, small

both = pytest.mark.parametrize("backbone", BACKBONES)


@both
@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_round_trip(backbone: str, conditioning: str, tmp_path: Path) -> None:
    network = small(backbone, conditioning, cycles=[1, 3])
    save_expert(network, tmp_path / "expert", {"objective": "full"})
    loaded = load_expert(tmp_path / "expert")
    told, x_t = condition(3), partly_masked(3)
    assert torch.equal(
        loaded.log_probs(x_t, loaded.encode(told)), network.log_probs(x_t, network.encode(told)).detach()
    )
    assert loaded.config == network.config
    assert loaded.cycles == (1, 3)
    assert not loaded.vector.requires_grad
    assert read_config(tmp_path / "expert")["about"] == {"objective": "full"}
    assert sorted(path.name for path in (tmp_path / "expert").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]


@both
def test_no_key_of_a_wrapper_and_no_shape_of_the_data(backbone: str, tmp_path: Path) -> None:
    network = small(backbone)
    network.compile_parts()
    save_expert(network, tmp_path)
    names = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert not any("_orig_mod" in name or "module." in name for name in names)
    other = build(backbone, {**read_config(tmp_path)["network"], "layout": [7, 3]})
    assert {n: s.shape for n, s in other.layout.slots.items()} == {
        n: tuple(w.shape) for n, w in names.items()
    }


def test_a_fresh_process_needs_only_the_folder(tmp_path: Path) -> None:
    network = small("trans-ir")
    save_expert(network, tmp_path / "elsewhere")
    code = (
        "import sys, torch; from factordiff.networks.store import load_expert;"
        "e = load_expert(sys.argv[1]); print(repr(float(e.vector.double().sum())))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "elsewhere")], capture_output=True, text=True, check=True
    ).stdout
    # The alignment's gaps are the only difference between the vectors, and the small one has none that matter.
    assert float(printed) == pytest.approx(
        sum(float(w.double().sum()) for w in network.named_weights().values())
    )


def test_nothing_but_the_two_files_is_missed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="expected a folder with config"):
        load_expert(tmp_path)
    save_expert(small("conv-ir"), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read"):
        load_expert(tmp_path)


def test_a_folder_that_is_not_there_is_told_from_one_without_the_file(tmp_path: Path) -> None:
    network = small("conv-ir")
    for read in (weight_hash, read_config, lambda folder: load_weights(network, folder)):
        with pytest.raises(
            CheckpointError, match=r"No such file or directory: there is no folder .*none"
        ) as told:
            read(tmp_path / "none")
        assert "expected a folder with config.json and model.safetensors. Name the folder" in str(told.value)
        with pytest.raises(CheckpointError, match=r"\(No such file or directory\); expected a folder with"):
            read(tmp_path)


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    save_expert(small("conv-ir"), tmp_path)
    model = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(model[: len(model) // 2])
    with pytest.raises(CheckpointError, match="damaged or not a safetensors file"):
        load_expert(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="not an expert's configuration"):
        load_expert(tmp_path)


def test_weights_of_another_configuration_are_refused(tmp_path: Path) -> None:
    save_expert(small("trans-ir"), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["network"]["conditioning"] = "paper"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"were they saved with another config\.json"):
        load_expert(tmp_path)


def test_unknown_backbones_and_settings_are_refused() -> None:
    with pytest.raises(Unavailable, match="expected one of trans-ir, conv-ir, transformer, got 'mlp'"):
        build("mlp")
    with pytest.raises(Unavailable, match="trans-ir has no setting depth"):
        build("trans-ir", {"depth": 3})


class FolderHub:
    """huggingface_hub's three calls against a folder on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def HfApi(self) -> FolderHub:
        return self

    def create_repo(self, repository: str, exist_ok: bool) -> None:
        (self.root / repository).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(self, repo_id: str, folder_path: str) -> str:
        for path in Path(folder_path).iterdir():
            (self.root / repo_id / path.name).write_bytes(path.read_bytes())
        return f"commit of {repo_id}"

    def snapshot_download(self, repository: str, allow_patterns: list[str], **options: Any) -> str:
        for name in allow_patterns:
            target = Path(options["local_dir"]) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((self.root / repository / name).read_bytes())
        return str(options["local_dir"])


def test_push_and_pull(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_hub", lambda: FolderHub(tmp_path / "hub"))
    network = small("trans-ir")
    save_expert(network, tmp_path / "mine")
    assert push_expert(tmp_path / "mine", "someone/expert") == "commit of someone/expert"
    folder = pull_expert("someone/expert", tmp_path / "pulled")
    assert torch.equal(load_expert(folder).vector, load_expert(tmp_path / "mine").vector)
    with pytest.raises(CheckpointError):
        push_expert(tmp_path / "nothing", "someone/expert")
