"""Where a grid ends, as the experts are told: the same whoever makes the condition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.arc.conditions import condition_from, inside
from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import COLORS, from_canvas
from factordiff.arc.symmetry import SYMMETRIES, inverse, transform
from factordiff.arc.task import Task, parse_task, spell_task
from factordiff.experts.condition import Condition
from factordiff.solving.solver import condition_of

ITEMS = torch.arange(200)


def parts(told: Condition) -> list[tuple[Tensor, Tensor]]:
    """Each canvas of a condition, and which of its cells are inside."""
    assert told.inside is not None
    grids = (told.query, told.context_inputs, told.context_outputs)
    return [(grid, mask) for grid, mask in zip(grids, told.inside, strict=True)]


def rectangle(mask: Tensor) -> tuple[int, int]:
    """Height and width of the cells inside, which must be a rectangle in the corner."""
    plane = mask.view(10, 10)
    height, width = int(plane.any(1).sum()), int(plane.any(0).sum())
    assert plane[:height, :width].all()
    assert int(plane.sum()) == height * width
    return height, width


def test_inside_by_hand() -> None:
    cells = inside(torch.tensor([[1, 3], [10, 10]], dtype=torch.uint8))
    assert cells[0].nonzero().flatten().tolist() == [0, 1, 2]
    assert cells[1].all()


def test_a_query_whose_last_rows_are_zero_keeps_them() -> None:
    """The point of it all: on the canvas alone the two could not be told apart."""
    canvases = torch.zeros(2, 2, 2, 100, dtype=torch.uint8)
    shapes = torch.full((2, 2, 2, 2), 3)
    shapes[1, 0, 0] = torch.tensor([5, 3])
    told = condition_from(canvases, inside(shapes))
    assert torch.equal(told.query[0], told.query[1])
    assert told.inside is not None
    assert [rectangle(mask) for mask in told.inside.query] == [(3, 3), (5, 3)]


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_outside_survives_every_symmetry(dataset: Dataset, symmetry: int) -> None:
    """Moved back, the grid cut out by `inside` is the grid of the item in its own orientation."""
    weights = torch.zeros(8)
    weights[0] = 1.0
    plain, _ = dataset.draw(3, 1, ITEMS, symmetry_weights=weights)
    moved, _ = dataset.draw(3, 1, ITEMS, symmetry_weights=weights.roll(symmetry))
    for (grids, masks), (before, had) in zip(parts(moved), parts(plain), strict=True):
        rows = zip(*(part.reshape(-1, 100) for part in (grids, masks, before, had)), strict=True)
        for canvas, mask, own, own_mask in list(rows)[::17]:
            found = from_canvas(canvas.to(torch.uint8).numpy(), rectangle(mask))
            expected = from_canvas(own.to(torch.uint8).numpy(), rectangle(own_mask))
            assert np.array_equal(transform(found, inverse(symmetry)), expected)


def test_renaming_leaves_the_outside_alone(dataset: Dataset) -> None:
    plain, _ = dataset.draw(3, 2, ITEMS)
    renamed, _ = dataset.draw(3, 2, ITEMS, alike=dataset.exchangeable(), rename=1.0)
    assert not torch.equal(plain.query, renamed.query)
    for (grids, masks), (_, before) in zip(parts(renamed), parts(plain), strict=True):
        assert torch.equal(masks, before)
        assert (grids[~masks] == 0).all()


def test_a_missing_demonstration_is_all_outside(dataset: Dataset) -> None:
    told, _ = dataset.draw(3, 3, ITEMS, frames=4, min_frames=1)
    assert told.inside is not None
    assert (~told.present).any()
    for masks in (told.inside.context_inputs, told.inside.context_outputs):
        assert not masks[~told.present].any()
        assert masks[told.present].any(-1).all()
    assert (told.grids(sees_sizes=True)[1][~told.present] == -1).all()


@pytest.mark.parametrize("split", ["validation", "official", "unseen"])
def test_the_lists_and_solve_tell_the_same(dataset: Dataset, split: str) -> None:
    """Also after the task went through JSON, as it does on its way to `solve` and to the page."""
    queries = dataset.evaluation(split, 40)  # type: ignore[arg-type]
    for index in range(0, len(queries), 13):
        task: Task = parse_task(spell_task(queries.task(index)), "again", "test")
        mine = condition_of(task, 0)
        frames = mine.present.shape[1]
        for (found, masks), (listed, expected) in zip(
            parts(mine), parts(queries.condition(torch.tensor([index]))), strict=True
        ):
            if found.ndim == 3:
                listed, expected = listed[:, :frames], expected[:, :frames]
            assert torch.equal(found, listed)
            assert torch.equal(masks, expected)
        assert rectangle(mine.inside.query[0]) == queries.query(index)[0].shape  # type: ignore[union-attr]


def test_the_answer_stays_padded_with_zero(dataset: Dataset) -> None:
    """Accuracy counts all cells of the canvas: the answer has no outside."""
    _, x_0 = dataset.draw(3, 4, ITEMS)
    assert int(x_0.min()) == 0
    assert int(x_0.max()) < COLORS.size
