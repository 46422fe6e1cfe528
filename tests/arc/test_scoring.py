from __future__ import annotations

import numpy as np
import pytest
import torch

from factordiff.arc.scoring import exact, grid_accuracy, grid_right, pixel, task_accuracy, task_right
from factordiff.errors import InvalidInput


def test_pixel_and_exact_count_the_whole_canvas() -> None:
    x_0 = torch.zeros(3, 100, dtype=torch.int64)
    predicted = x_0.clone()
    predicted[1, 99] = 4  # padding counts
    predicted[2, :50] = 1
    assert pixel(predicted, x_0).tolist() == [1.0, 0.99, 0.5]
    assert exact(predicted, x_0).tolist() == [True, False, False]


def test_a_grid_is_right_only_with_its_shape() -> None:
    truth = np.array([[1, 0]], dtype=np.uint8)
    assert grid_right([truth], truth)
    assert grid_right([truth[:, :1], truth], truth), "one of two attempts is enough"
    assert not grid_right([truth[:, :1], np.array([[1], [0]], dtype=np.uint8)], truth)
    assert not grid_right([], truth)


def test_a_task_is_right_with_every_grid() -> None:
    right = torch.tensor([True, True, False, True, True])
    tasks = torch.tensor([7, 2, 7, 9, 9])
    assert task_right(right, tasks).tolist() == [True, False, True]  # tasks 2, 7, 9
    assert grid_accuracy(right) == 4 / 5
    assert task_accuracy(right, tasks) == pytest.approx(2 / 3)
    with pytest.raises(InvalidInput, match="tasks: expected one for each of the 5 queries, got 4"):
        task_right(right, tasks[:4])
