"""How far a task is from what the experts know, by the evidence of its own demonstrations.

Each demonstration is hidden in turn and predicted from the others. An expert that knows the rule is nearly sure of
every cell; for a rule that no known task has, it is about as surprised as by noise. What counts as sure is measured,
on known tasks, by the very experts that are asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch

from factordiff.arc.task import Task, parse_task
from factordiff.experts.expert import Expert
from factordiff.sampling.demonstration_evidence import demonstration_evidence
from factordiff.solving.solver import condition_of
from factordiff.web.events import ExpertFamiliarity, Familiarity
from factordiff.web.library import Library

KNOWN = 24  # of the known tasks, evenly chosen: enough for a median and a worst tenth
WORST = 0.9


def bits_per_cell(expert: Expert, task: Task, device: torch.device) -> float:
    """How many bits a cell of the demonstrations' outputs costs the expert; 0 is to be sure and right."""
    scores, _ = demonstration_evidence([expert], condition_of(task, 0).to(device))
    cells = sum(pair.output.size for pair in task.demonstrations if pair.output is not None)
    return max(0.0, -float(scores[0, 0]) / math.log(2) / cells)


class KnownTasks:
    """What known tasks cost each expert; measured once, when somebody asks."""

    def __init__(self) -> None:
        self.measured: dict[str, list[float]] = {}

    @cached_property
    def tasks(self) -> list[Task]:
        """Published tasks with at least two demonstrations."""
        library = Library()
        ids = [one["id"] for one in library.listing if one["published"]]
        spelled = [library.task(task, "published", 0) for task in ids[:: max(1, len(ids) // KNOWN)]]
        return [parse_task(one, "known", "library") for one in spelled if len(one["train"]) > 1]

    def bits(self, name: str, expert: Expert, device: torch.device, check: Callable[[], None]) -> list[float]:
        """Bits a cell of each known task; `check` raises to stop in between, and the next who asks goes on there."""
        found = self.measured.setdefault(name, [])
        for task in self.tasks[len(found) :]:
            check()
            found.append(bits_per_cell(expert, task, device))
        return found

    def familiarity(
        self,
        task: Task,
        experts: Sequence[tuple[str, Expert]],
        device: torch.device,
        check: Callable[[], None],
    ) -> Familiarity:
        """Each expert on this task's demonstrations, beside known tasks."""
        if len(task.demonstrations) < 2:
            return Familiarity(
                demonstrations=len(task.demonstrations), known_tasks=0, explained=None, experts=[]
            )
        found = []
        for name, expert in experts:
            known = self.bits(name, expert, device, check)
            check()
            found.append(
                ExpertFamiliarity(
                    expert=name,
                    bits=round(bits_per_cell(expert, task, device), 4),
                    known_median=round(float(np.median(known)), 4),
                    known_worst=round(float(np.quantile(known, WORST)), 4),
                )
            )
        return Familiarity(
            demonstrations=len(task.demonstrations),
            known_tasks=len(self.tasks),
            explained=any(one.bits <= one.known_worst for one in found),
            experts=found,
        )
