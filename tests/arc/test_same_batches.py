"""Training batches, bit for bit what they have been: a run that resumes must see the items it would have seen."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from factordiff.arc.artefact import encode_ids, make_artefact, save_artefact
from factordiff.arc.dataset import Dataset

ITEMS = torch.arange(50, 450)
PER_TASK = 6  # instances of a task in the training-only set
WEIGHTS = torch.tensor([4.0, 1, 0, 1, 0, 1, 1, 0])


@pytest.fixture(scope="module")
def with_more(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A training-only set of grids of all sizes, each a pattern of its task, instance and cell."""
    rng = np.random.Generator(np.random.PCG64(0))
    tasks = len(dataset.tasks)
    arrays: dict[str, Any] = {"tasks": encode_ids(dataset.tasks)}
    for side in ("input", "output"):
        shapes = rng.integers(1, 11, (tasks, PER_TASK, 2), dtype=np.uint8)
        canvases = rng.integers(0, 10, (tasks, PER_TASK, 10, 10), dtype=np.uint8)
        places = np.arange(10)
        canvases *= (places[:, None] < shapes[..., 0, None, None]) & (places < shapes[..., 1, None, None])
        arrays |= {f"{side}s": canvases.reshape(tasks, PER_TASK, 100), f"{side}_shapes": shapes}
    file: Path = tmp_path_factory.mktemp("more") / "more.npz"
    save_artefact(make_artefact(arrays, {}), file)
    return Dataset.load(more=file)


def digest(dataset: Dataset, seed: int, step: int | torch.Tensor, options: dict[str, Any]) -> str:
    """The first digits of the SHA-256 of everything a batch holds."""
    options = dict(options)
    if "rename" in options:
        options["alike"] = dataset.exchangeable()
    if "sized" in options:
        options["by_size"] = dataset.evenly_sized()
    told, x_0 = dataset.draw(seed, step, ITEMS, **options)
    assert told.inside is not None
    grids = (told.query, told.context_inputs, told.context_outputs, x_0)
    masks = (told.present, *told.inside)
    assert all(grid.dtype == torch.int64 for grid in grids)
    assert all(mask.dtype == torch.bool for mask in masks)
    found = hashlib.sha256()
    for part in (*grids, *masks):
        found.update(str(tuple(part.shape)).encode() + part.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


CASES: list[tuple[int, int, dict[str, Any], str]] = [
    (0, 0, {}, "8f52bc724dbf3763"),
    (7, 40, {"frames": 1}, "14ed815f797f71e3"),
    (2**40 + 3, 123_456, {"frames": 5}, "d5431eda63c80975"),
    (-1, 3, {"frames": 2, "symmetry_weights": WEIGHTS}, "23b0dfaeeb73bdaa"),
    (1, 8, {"frames": 5, "min_frames": 1}, "87e64a222adcd9ce"),
    (1, 8, {"frames": 4, "min_frames": 4}, "8e07b0bb824e42ef"),
    (3, 9, {"frames": 3, "min_frames": 2, "rename": 0.5}, "a57169499b8d2fa5"),
    (4, 2, {"rename": 1.0, "tasks": torch.tensor([3, 50, 50, 119])}, "5f009be9a360fe59"),
    (5, 6, {"sized": 0.5}, "72782d7e415deec5"),
    (6, 1, {"more": 0.4, "frames": 5}, "af14e274903e3174"),
    (
        8,
        77,
        {"more": 0.3, "sized": 0.6, "rename": 0.7, "min_frames": 1, "symmetry_weights": WEIGHTS},
        "7791ef6ae95552f9",
    ),
]


@pytest.mark.parametrize(("seed", "step", "options", "expected"), CASES)
def test_the_same_bits_as_ever(
    dataset: Dataset, with_more: Dataset, seed: int, step: int, options: dict[str, Any], expected: str
) -> None:
    drawn_from = with_more if "more" in options else dataset
    assert digest(drawn_from, seed, step, options) == expected
    assert digest(drawn_from, seed, torch.tensor(step), options) == expected
