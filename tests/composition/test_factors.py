"""Partitions: flood fill, rectangles, and labels that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition import factors
from factordiff.errors import InvalidInput
from tests import oracle
from tests.toy import seeds, state, states

sizes = st.integers(1, 6)


@given(seeds, st.integers(1, 3), sizes, sizes, st.integers(1, 4))
def test_components_are_the_flood_fill(seed: int, items: int, height: int, width: int, colors: int) -> None:
    maps = torch.from_numpy(np.random.default_rng(seed).integers(-1, colors, size=(items, height, width)))
    found = factors.components(maps)
    assert found.tolist() == [oracle.components(grid) for grid in maps.tolist()]


@given(seeds, sizes, sizes, st.sampled_from([0.0, 0.5, 1.0]))
def test_components_of_the_state_leave_masked_cells_alone(
    seed: int, height: int, width: int, hidden: float
) -> None:
    x_t = states(seed, 2, height * width, 3, hidden)
    here = state(x_t, 3, torch.zeros(1, 2, dtype=torch.float64))
    labels = factors.labels_for(factors.components_of_state(height, width), here)
    for row in range(2):
        grid = [10 + cell if value == 3 else value for cell, value in enumerate(x_t[row].tolist())]
        assert labels[row].tolist() == oracle.components(np.reshape(grid, (height, width)).tolist())


@given(sizes, sizes, sizes, sizes)
def test_blocks_rows_columns(height: int, width: int, down: int, right: int) -> None:
    labels = factors.blocks(height, width, down, right).view(height, width)
    for y, x in np.ndindex(height, width):
        together = (labels == labels[y, x]).nonzero().tolist()
        near = [
            [b, a]
            for b in range(height)
            for a in range(width)
            if b // down == y // down and a // right == x // right
        ]
        assert together == near
    assert labels.unique().tolist() == list(range(len(labels.unique())))
    assert factors.rows(height, width).tolist() == [y for y in range(height) for _ in range(width)]
    assert factors.columns(height, width).tolist() == list(range(width)) * height
    assert factors.pixels(height).tolist() == list(range(height))
    assert factors.whole(height).tolist() == [0] * height


def test_labels_may_be_shared_or_belong_to_items() -> None:
    here = state(torch.full((3, 2), 5), 5, torch.zeros(1, 3, dtype=torch.float64))
    here = replace(here, item=torch.tensor([1, 0, 1]))
    own = torch.tensor([[0, 0], [0, 1]])
    assert factors.labels_for(own, here).tolist() == [[0, 1], [0, 0], [0, 1]]
    assert factors.labels_for(torch.tensor([1, 0]), here).tolist() == [[1, 0]] * 3


@pytest.mark.parametrize(
    ("partition", "what"),
    [
        (torch.zeros(3, dtype=torch.int64), "one label for each of 2 cells, got labels for 3"),
        (torch.zeros(2, 3, dtype=torch.int64), "one label for each of 2 cells, got labels for 3"),
        (torch.zeros(2, 2, 2, dtype=torch.int64), r"got shape \(2, 2, 2\)"),
        (torch.tensor(0), r"got shape \(\)"),
        (torch.tensor([0, 2]), r"labels in 0 \.\. 1, got 0 \.\. 2"),
        (torch.tensor([0, -1]), r"labels in 0 \.\. 1, got -1 \.\. 0"),
        (torch.zeros(1, 2), "whole-number labels"),
        (torch.zeros(1, 2, dtype=torch.int64), "labels for every item, got 1 rows"),
        (lambda state: torch.zeros(1, 2, dtype=torch.int64), "labels for 1 rows"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_bad_labels_are_refused(partition: factors.Partition, what: str) -> None:
    here = state(torch.full((2, 2), 5), 5, torch.zeros(1, 2, dtype=torch.float64))
    with pytest.raises(InvalidInput, match=f"partition: .*{what}"):
        factors.labels_for(partition, here)


@pytest.mark.parametrize("size", [(0, 3, 1, 1), (3, 0, 1, 1), (3, 3, 0, 1), (3, 3, 1, -1)])
def test_empty_layouts_and_blocks_are_refused(size: tuple[int, int, int, int]) -> None:
    with pytest.raises(InvalidInput, match=r"height.*width: expected at least 1 x 1"):
        factors.blocks(*size)
