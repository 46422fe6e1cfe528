"""Presets are the paper's numbers where they say so; impossible settings are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from factordiff.errors import InvalidInput, Unavailable
from factordiff.networks.store import build
from factordiff.training.settings import MAY_CHANGE, PRESETS, TrainingSettings, preset


def test_the_papers_preset() -> None:
    """The paper's table, and nothing of what we add."""
    paper = preset("paper")
    assert (paper.lr, paper.momentum, paper.batch, paper.max_steps) == (2e-4, 0.95, 1100, 60_000)
    assert (paper.warmup, paper.clip, paper.dtype) == (1_000, 1.0, "bfloat16")
    assert (paper.patience, paper.check_every) == (30, 500)
    assert (paper.lr_rest, paper.weight_decay, paper.decay_from) == (paper.lr, 0.0, paper.max_steps)
    assert paper.network == {"conditioning": "paper", "literal": True, "encoder": 64, "sees_sizes": False}
    assert (paper.frames, paper.min_frames) == (3, 3)
    assert paper.symmetry_weights() == pytest.approx([1 / 8] * 8)
    assert (paper.ema, paper.rename, paper.agreement, paper.emphasis, paper.tasks) == (
        0.0,
        0.0,
        0.0,
        {},
        None,
    )


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("backbone", ["trans-ir", "conv-ir"])
def test_presets_build_and_are_json(name: str, backbone: str) -> None:
    settings = preset(name)
    assert settings.preset == name
    assert json.loads(json.dumps(settings.as_json())) == settings.as_json()
    network = build(backbone, settings.network)
    if name != "tiny":
        assert 900_000 <= network.layout.count <= 1_100_000
    assert vars(settings).keys() >= MAY_CHANGE


def test_symmetry_weights() -> None:
    assert TrainingSettings().symmetry_weights() == pytest.approx([1 / 8] * 8)
    half = TrainingSettings(identity_share=0.5).symmetry_weights()
    assert half[0] == 0.5
    assert half[1:] == pytest.approx([1 / 14] * 7)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch", 0),
        ("max_steps", 0),
        ("lr", -1.0),
        ("lr", float("nan")),
        ("agreement", float("inf")),
        ("ema", 1.5),
        ("identity_share", -0.1),
        ("rename", 1.1),
        ("min_frames", 4),
        ("dtype", "float16"),
        ("compile", "all"),
        ("graph", "maybe"),
        ("patience", -1),
        ("snapshot_every", -1),
        ("tasks", ()),
        ("tasks", ("67a3c6ac", "67a3c6ac")),
        ("emphasis", {"67a3c6ac": 0}),
    ],
)
def test_impossible_settings_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=field):
        replace(TrainingSettings(), **{field: value})  # type: ignore[arg-type]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(Unavailable, match="expected one of paper, fast, tiny, sequence, got 'huge'"):
        preset("huge")
    with pytest.raises(Unavailable, match="objective: expected one of full, occupancy, color, got 'shape'"):
        TrainingSettings(objective="shape")
