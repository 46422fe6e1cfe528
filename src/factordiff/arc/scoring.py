"""How right an answer is: per cell, per canvas, per grid and per task.

`pixel` and `exact` are the paper's, over all 100 cells of the canvas, padding included. `grid` also demands the
answer's shape, as ARC does, and `task` every test of a task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.arc.grid import Grid
from factordiff.errors import InvalidInput
from factordiff.types import Tokens


def pixel(predicted: Tokens, x_0: Tokens) -> Float[Tensor, " batch"]:
    """The share of right cells of each canvas; its mean is the paper's pixel accuracy."""
    return (predicted == x_0).double().mean(-1)


def exact(predicted: Tokens, x_0: Tokens) -> Bool[Tensor, " batch"]:
    """Whether every cell of a canvas is right; the mean is the paper's exact accuracy."""
    return (predicted == x_0).all(-1)


def grid_right(attempts: Sequence[Grid], truth: Grid) -> bool:
    """Whether one of the attempts is the right grid: its shape and all its cells."""
    return any(np.array_equal(attempt, truth) for attempt in attempts)


def task_right(right: Bool[Tensor, " query"], tasks: Int[Tensor, " _query"]) -> Bool[Tensor, " task"]:
    """For each task that occurs, in the order of their indices, whether all its queries are right."""
    if len(right) != len(tasks):
        raise InvalidInput(f"tasks: expected one for each of the {len(right)} queries, got {len(tasks)}")
    _, places = torch.unique(tasks, return_inverse=True)
    wrong = torch.zeros(int(places.max()) + 1 if len(places) else 0, dtype=torch.int64, device=right.device)
    return wrong.index_add(0, places, (~right).to(torch.int64)) == 0


def grid_accuracy(right: Bool[Tensor, " query"]) -> float:
    """The share of right test grids."""
    return right.double().mean().item()


def task_accuracy(right: Bool[Tensor, " query"], tasks: Int[Tensor, " query"]) -> float:
    """The share of tasks with every test grid right."""
    return task_right(right, tasks).double().mean().item()
