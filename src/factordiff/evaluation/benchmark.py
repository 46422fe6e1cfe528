"""Runs become records: one per query, in the fixed order of the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.errors import InvalidInput
from factordiff.evaluation.methods import Method, answer
from factordiff.evaluation.specialists import (
    Asked,
    ColorQuestion,
    OccupancyQuestion,
    background_given,
    occupancy_of,
)
from factordiff.experts.expert import Expert
from factordiff.sampling.reveal import RevealRule

Question = Literal["full", "occupancy", "color"]
QUESTIONS = ("full", "occupancy", "color")


@dataclass(frozen=True)
class Record:
    """How one query went."""

    query: int  # place in the fixed list
    task: str
    number: int  # place in its task
    wrong: tuple[int, ...]  # the cells that differ from the truth
    nominal: int
    executed: int

    @property
    def exact(self) -> bool:
        """Every cell right."""
        return not self.wrong


def pose(
    question: Question, experts: Sequence[Expert], condition: Any, x_0: Tensor
) -> tuple[list[Expert], Any, Tensor, Tensor]:
    """The experts, condition, starting state and right answer of a question."""
    mask = experts[0].vocabulary.mask
    if question == "full":
        return list(experts), condition, torch.full_like(x_0, mask), x_0
    if question == "occupancy":
        asked: list[Expert] = [OccupancyQuestion(expert) for expert in experts]
        return asked, Asked(condition, x_0), torch.full_like(x_0, 2), occupancy_of(x_0)
    if question == "color":
        return [ColorQuestion(expert) for expert in experts], condition, background_given(x_0, mask), x_0
    raise InvalidInput(f"question: expected one of {', '.join(QUESTIONS)}, got {question!r}")


def evaluate(
    how: Method,
    experts: Sequence[Expert],
    queries: EvaluationSet,
    *,
    question: Question = "full",
    reveal: RevealRule | None = None,
    batch: int = 256,
    seed: int = 0,
    on_batch: Callable[[int, int], None] | None = None,
) -> Iterator[Record]:
    """Answer every query and compare; batches only divide the work, random numbers belong to the query."""
    if batch < 1:
        raise InvalidInput(f"batch: expected at least 1, got {batch}")
    device = queries.queries.device
    tasks, numbers, truths = queries.task_ids, queries.numbers.tolist(), queries.x_0
    for first in range(0, len(queries), batch):
        index = torch.arange(first, min(first + batch, len(queries)), device=device)
        asked, condition, x_t, x_0 = pose(question, experts, queries.condition(index), truths[index])
        samples = answer(how, asked, x_t, condition, reveal=reveal, seed=seed, items=index)
        wrong = (samples.x_0 != x_0).cpu()
        nominal, executed = samples.nominal_passes.tolist(), samples.executed_passes.tolist()
        for row, query in enumerate(index.tolist()):
            cells = tuple(wrong[row].nonzero().flatten().tolist())
            yield Record(query, tasks[query], numbers[query], cells, nominal[row], executed[row])
        if on_batch is not None:
            on_batch(len(index), len(queries))
