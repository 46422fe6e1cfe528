"""Renaming colors: what counts as used alike, and that a renaming is one order of those, each equally likely."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from factordiff.arc.dataset import Dataset
from factordiff.arc.recoloring import draw_renaming, exchangeable_colors
from factordiff.arc.source import ArcSource
from factordiff.training.settings import TrainingSettings

ROOT = Path(__file__).parents[2]
ALL = set(range(1, 10))


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.load()


def made(rule: str, instances: int = 760) -> tuple[np.ndarray, np.ndarray]:
    """A made-up task of two objects in random colors: an input and an output of six cells."""
    draw = np.random.default_rng(0)
    first, second = np.array([draw.permutation(9)[:2] + 1 for _ in range(instances)]).T
    inputs = np.stack([first, first, second, first, second, np.zeros_like(first)], 1)
    outputs = inputs.copy()
    if rule == "swap":
        outputs = np.stack([second, second, first, second, first, 0 * first], 1)
    elif rule == "fill":
        outputs[:, 5] = 4  # a color that means something
    elif rule == "next":
        outputs = np.where(
            inputs > 0, inputs % 9 + 1, 0
        )  # every color becomes the next: none can be exchanged
    elif rule == "cross":
        inputs = np.where(inputs == 7, 3, inputs)  # 7 never occurs, 3 twice as often
        outputs = inputs.copy()
    return inputs[None].astype(np.uint8), outputs[None].astype(np.uint8)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("copy", ALL), ("swap", ALL), ("fill", ALL - {4}), ("next", set()), ("cross", ALL - {3, 7})],
)
def test_colors_that_mean_something_are_not_exchanged(rule: str, expected: set[int]) -> None:
    (found,) = exchangeable_colors(*made(rule))
    assert set(np.flatnonzero(found)) == expected


def test_colors_that_become_others_are_not_exchanged(dataset: Dataset) -> None:
    """Fixed substitutions (0d3d703e: 1 and 5, 2 and 6, 3 and 4, 8 and 9) show only in which colors come together."""
    alike = dataset.exchangeable().numpy()
    assert alike[dataset.tasks.index("0d3d703e")].sum() <= 2
    assert alike[dataset.tasks.index("67a3c6ac"), 1:].all()  # a mirror cares for no color
    assert not alike[:, 0].any()
    assert (alike.sum(1) != 1).all()
    counts = np.bincount(alike.sum(1), minlength=10)
    said = re.search(r"all nine in (\d+) tasks, none in one", (ROOT / "docs" / "data.md").read_text())
    assert said is not None
    assert (counts[9], counts[0]) == (int(said[1]), 1)


def test_a_renaming_permutes_what_is_alike_and_nothing_else() -> None:
    items = torch.arange(4000)
    alike = torch.zeros(4000, 10, dtype=torch.bool)
    alike[:2000, [2, 5, 7]] = True
    found = draw_renaming(0, 3, items, alike, 1.0)
    kept = [0, 1, 3, 4, 6, 8, 9]
    assert torch.equal(found[:, kept], torch.tensor(kept).expand(4000, -1))
    assert torch.equal(found[2000:], torch.arange(10).expand(2000, -1))
    counts = dict.fromkeys(itertools.permutations((2, 5, 7)), 0)
    for row in found[:2000, [2, 5, 7]].tolist():
        counts[tuple(row)] += 1
    error = (2000 * 1 / 6 * 5 / 6) ** 0.5
    assert all(abs(count - 2000 / 6) < 4 * error for count in counts.values())


def test_the_share_is_how_many_are_renamed() -> None:
    items, alike = torch.arange(20_000), torch.ones(20_000, 10, dtype=torch.bool)
    alike[:, 0] = False
    renamed = (draw_renaming(1, 0, items, alike, 0.3) != torch.arange(10)).any(1).double().mean()
    assert abs(float(renamed) - 0.3) < 4 * (0.3 * 0.7 / 20_000) ** 0.5 + 1e-5


def test_an_items_grids_are_renamed_alike(dataset: Dataset) -> None:
    """With every color told apart, all grids of an item are the plain item's under one map; the cells stay put."""
    items, step = torch.arange(64), torch.tensor(2)
    plain, x_0 = ArcSource(dataset, TrainingSettings()).draw(0, step, items)
    renamed, y_0 = ArcSource(dataset, TrainingSettings(rename=0.5)).draw(0, step, items)
    before = torch.cat(
        [plain.query, plain.context_inputs.flatten(1), plain.context_outputs.flatten(1), x_0], 1
    )
    after = torch.cat(
        [renamed.query, renamed.context_inputs.flatten(1), renamed.context_outputs.flatten(1), y_0], 1
    )
    changed = 0
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        pairs = set(zip(one, other, strict=True))
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
        assert dict(pairs).get(0, 0) == 0
        changed += one != other
    assert 16 <= changed <= 48
