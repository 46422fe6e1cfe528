"""The data set as the trainer's source of batches."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import CELLS, COLORS
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.training.settings import TrainingSettings
from factordiff.types import Tokens


class ArcSource:
    """Training items under the settings' symmetries and renamings, and validation queries, of the settings' tasks."""

    def __init__(self, dataset: Dataset, settings: TrainingSettings) -> None:
        self.dataset, self.settings = dataset, settings
        self.digest = dataset.sha256
        self.vocabulary, self.cells = COLORS, CELLS
        self._symmetries = torch.tensor(settings.symmetry_weights(), device=dataset.device)
        self._alike = dataset.exchangeable() if settings.rename > 0.0 else None
        self._by_size = dataset.evenly_sized() if settings.sized > 0.0 else None
        self._tasks = None if settings.tasks is None else _indices(dataset, settings.tasks)
        self._drawn = self._tasks
        if settings.emphasis:
            listed = settings.tasks or tuple(dataset.tasks)
            self._drawn = _indices(dataset, _repeated(listed, settings.emphasis))
        self._validation: dict[int, tuple[Condition, Tokens]] = {}

    def draw(self, seed: int, step: Int[Tensor, ""], items: Int[Tensor, " item"]) -> tuple[Condition, Tokens]:
        """Training items of a step."""
        settings = self.settings
        return self.dataset.draw(
            seed,
            step,
            items,
            settings.frames,
            self._symmetries,
            self._drawn,
            settings.min_frames,
            self._alike,
            settings.rename,
            settings.more,
            self._by_size,
            settings.sized,
        )

    def validation(self, items: int) -> tuple[Condition, Tokens]:
        """The first validation queries of the tasks, kept on the device."""
        if items not in self._validation:
            queries = self.dataset.evaluation("validation")
            rows = torch.arange(len(queries.x_0), device=self.dataset.device)
            if self._tasks is not None:
                rows = rows[torch.isin(queries.task_indices, self._tasks)]
            rows = rows[:items]
            self._validation[items] = queries.condition(rows), queries.x_0[rows]
        return self._validation[items]


def _repeated(tasks: tuple[str, ...], emphasis: dict[str, int]) -> tuple[str, ...]:
    """The tasks, each as often as it is to be drawn beside the others."""
    unknown = [task for task in emphasis if task not in tasks]
    if unknown:
        raise InvalidInput(f"emphasis: {', '.join(unknown)} is not among the {len(tasks)} tasks of this run")
    return tuple(task for task in tasks for _ in range(emphasis.get(task, 1)))


def _indices(dataset: Dataset, tasks: tuple[str, ...]) -> Int[Tensor, " task"]:
    unknown = [task for task in tasks if task not in dataset.tasks]
    if unknown:
        raise InvalidInput(
            f"tasks: the data set has no {', '.join(unknown)}; "
            f"expected ids such as {dataset.tasks[0]} (its {len(dataset.tasks)} tasks: factordiff data show)"
        )
    return torch.tensor([dataset.tasks.index(task) for task in tasks], device=dataset.device)
