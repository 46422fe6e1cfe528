"""A fixed list of queries, each with fixed demonstrations: the same for every method and every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from factordiff.arc.artefact import Artefact, decode_ids
from factordiff.arc.conditions import condition_from, inside
from factordiff.arc.grid import CELLS, Grid, from_canvas
from factordiff.arc.splits import VALIDATION_AND_TEST
from factordiff.arc.task import Pair, Task
from factordiff.experts.condition import Condition
from factordiff.types import Tokens


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Queries in a fixed order that interleaves the tasks.

    `pool` holds the pairs; query i is pair `queries[i]` and its demonstrations are the pairs `frames[i]` where
    `present[i]`. `numbers[i]` is the query's place in its task: the instance of a RE-ARC task, the test of a
    published one.
    """

    tasks: tuple[str, ...]
    pool: UInt8[Tensor, "pair 2 cell"]
    pool_shapes: UInt8[Tensor, "pair 2 2"]
    queries: Int[Tensor, " query"]
    frames: Int[Tensor, "query frame"]
    present: Bool[Tensor, "query frame"]
    task_indices: Int[Tensor, " query"]
    numbers: Int[Tensor, " query"]

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def task_ids(self) -> list[str]:
        """The task of each query."""
        return [self.tasks[index] for index in self.task_indices.tolist()]

    @property
    def x_0(self) -> Tokens:
        """The right canvas of every query."""
        return self.pool[self.queries, 1].to(torch.int64)

    @property
    def input_shapes(self) -> Int[Tensor, "query 2"]:
        """Height and width of every query's input grid."""
        return self.pool_shapes[self.queries, 0].to(torch.int64)

    @property
    def output_shapes(self) -> Int[Tensor, "query 2"]:
        """Height and width of every query's right answer."""
        return self.pool_shapes[self.queries, 1].to(torch.int64)

    def condition(self, indices: slice | Tensor = slice(None)) -> Condition:
        """What an expert is told about these queries."""
        frames, present = self.frames[indices], self.present[indices]
        pairs = torch.cat([self.queries[indices][:, None], frames], dim=1)
        return condition_from(self.pool[pairs], inside(self.pool_shapes[pairs]), present)

    def demonstrations(self, index: int) -> list[tuple[Grid, Grid]]:
        """The demonstrations of one query as grids."""
        return [self._grids(pair) for pair in self.frames[index][self.present[index]].tolist()]

    def query(self, index: int) -> tuple[Grid, Grid]:
        """One query and its right answer as grids."""
        return self._grids(int(self.queries[index]))

    def task(self, index: int) -> Task:
        """One query as a task with one test."""
        shown = tuple(Pair(one, other) for one, other in self.demonstrations(index))
        return Task(self.tasks[int(self.task_indices[index])], shown, (Pair(*self.query(index)),))

    def _grids(self, pair: int) -> tuple[Grid, Grid]:
        canvases, shapes = self.pool[pair].cpu().numpy(), self.pool_shapes[pair].tolist()
        return from_canvas(canvases[0], tuple(shapes[0])), from_canvas(canvases[1], tuple(shapes[1]))

    def first(self, limit: int | None) -> EvaluationSet:
        """The first `limit` queries of the fixed order, or all."""
        return self.take(slice(limit))

    def take(self, rows: slice | Tensor) -> EvaluationSet:
        """Some of the queries."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _PER_QUERY})

    def to(self, device: torch.device | str) -> EvaluationSet:
        """The same set on another device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in (*_PER_QUERY, *_POOL)})


_PER_QUERY = ("queries", "frames", "present", "task_indices", "numbers")
_POOL = ("pool", "pool_shapes")


def split_queries(artefact: Artefact, instances: range) -> EvaluationSet:
    """The RE-ARC queries with these instance numbers, each with its stored demonstrations."""
    arrays, tasks = artefact.arrays, artefact.tasks
    per_task = arrays["inputs"].shape[1]
    # Instance by instance, and within it task by task: any first N are spread evenly over the tasks.
    numbers = np.repeat(np.array(instances), len(tasks))
    task_indices = np.tile(np.arange(len(tasks)), len(instances))
    frames = arrays["evaluation_frames"][task_indices, numbers - VALIDATION_AND_TEST.start].astype(np.int64)
    return EvaluationSet(
        tuple(tasks),
        *_pool(arrays, ""),
        queries=torch.from_numpy(task_indices * per_task + numbers),
        frames=torch.from_numpy(task_indices[:, None] * per_task + frames),
        present=torch.ones(frames.shape, dtype=torch.bool),
        task_indices=torch.from_numpy(task_indices),
        numbers=torch.from_numpy(numbers),
    )


def official_queries(artefact: Artefact, name: str) -> EvaluationSet:
    """The published tests of a set of tasks, each with all the published demonstrations of its task."""
    arrays = artefact.arrays
    tasks, owners, is_test = (arrays[f"{name}_{key}"] for key in ("tasks", "owners", "is_test"))
    shown = [np.flatnonzero((owners == task) & ~is_test) for task in range(len(tasks))]
    asked = [np.flatnonzero((owners == task) & is_test) for task in range(len(tasks))]
    order = sorted((number, task) for task, tests in enumerate(asked) for number in range(len(tests)))
    frames = np.zeros((len(order), max(map(len, shown))), dtype=np.int64)
    present = np.zeros(frames.shape, dtype=bool)
    for row, (_, task) in enumerate(order):
        frames[row, : len(shown[task])] = shown[task]
        present[row, : len(shown[task])] = True
    return EvaluationSet(
        tuple(decode_ids(tasks)),
        *_pool(arrays, f"{name}_"),
        queries=torch.tensor([asked[task][number] for number, task in order]),
        frames=torch.from_numpy(frames),
        present=torch.from_numpy(present),
        task_indices=torch.tensor([task for _, task in order]),
        numbers=torch.tensor([number for number, _ in order]),
    )


def _pool(arrays: Mapping[str, np.ndarray], prefix: str) -> tuple[Tensor, Tensor]:
    canvases = np.stack(
        [arrays[f"{prefix}{side}s"].reshape(-1, CELLS) for side in ("input", "output")], axis=1
    )
    shapes = np.stack(
        [arrays[f"{prefix}{side}_shapes"].reshape(-1, 2) for side in ("input", "output")], axis=1
    )
    return torch.from_numpy(canvases), torch.from_numpy(shapes)
