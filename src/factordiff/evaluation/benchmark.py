"""Runs become records: one per query, in the fixed order of the list."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.scoring import grid_right
from factordiff.arc.shapes import answer_grid
from factordiff.composition.method import Method
from factordiff.engine.decode import decode, drawn_by_weight
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.evaluation import specialists
from factordiff.experts.expert import Expert
from factordiff.report.record import QUESTIONS, Question, Record
from factordiff.sampling.reveal import RevealRule
from factordiff.streams import hash_words
from factordiff.types import Tokens


def pose(
    question: Question, experts: Sequence[Expert], condition: Any, x_0: Tensor
) -> tuple[list[Expert], Any, Tensor, Tensor]:
    """The experts, condition, starting state and right answer of a question."""
    mask = experts[0].vocabulary.mask
    if question == "full":
        return list(experts), condition, torch.full_like(x_0, mask), x_0
    if question == "occupancy":
        asked: list[Expert] = [specialists.OccupancyQuestion(expert) for expert in experts]
        told = specialists.ConditionWithTruth(condition, x_0)
        return asked, told, torch.full_like(x_0, 2), specialists.occupancy_of(x_0)
    if question == "color":
        asked = [specialists.ColorQuestion(expert) for expert in experts]
        return asked, condition, specialists.background_given(x_0, mask), x_0
    raise InvalidInput(f"question: expected one of {', '.join(QUESTIONS)}, got {question!r}")


def evaluate_batch(
    how: Method,
    experts: Sequence[Expert],
    queries: EvaluationSet,
    index: Int[Tensor, " query"],
    *,
    question: Question = "full",
    reveal: RevealRule | None = None,
    seed: int = 0,
    grids: bool = False,
    engine: Engine | None = None,
) -> tuple[list[Record], float]:
    """Answer these queries in one batch: the records, and the seconds of decoding.

    `grids` also cuts each canvas to its inferred shape, as ARC asks.
    """
    asked, condition, x_t, x_0 = pose(question, experts, queries.condition(index), queries.x_0[index])
    if engine is not None and engine.compiled:
        engine.prepare(asked, x_t, condition)
    begun = time.perf_counter()
    samples = decode(how, asked, x_t, condition, reveal=reveal, seed=seed, items=index, engine=engine)
    if x_t.is_cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    wrong = _wrong_cells(samples.x_0, x_0)
    wrong_drawn: list[tuple[int, ...]] | None = None
    if how.selection == "highest-target":  # the same run, read the other way
        drawn = drawn_by_weight(samples, seed, index)
        wrong_drawn = _wrong_cells(drawn, x_0)
    tasks, numbers = queries.task_indices[index].tolist(), queries.numbers[index].tolist()
    nominal, executed = samples.nominal_passes.tolist(), samples.executed_passes.tolist()
    answers, shapes = answer_hashes(samples.x_0), queries.output_shapes[index].tolist()
    records = [
        Record(
            query,
            queries.tasks[tasks[row]],
            numbers[row],
            wrong[row],
            nominal[row],
            executed[row],
            seed,
            None if wrong_drawn is None else wrong_drawn[row],
            _grid_right(samples.x_0[row], queries, query) if grids else None,
            _grid_right(drawn[row], queries, query) if grids and wrong_drawn is not None else None,
            answers[row],
            (shapes[row][0], shapes[row][1]),
        )
        for row, query in enumerate(index.tolist())
    ]
    return records, seconds


def answer_hashes(x_0: Tokens) -> list[str]:
    """A short hash of each answer, the same on every device: how two runs are found to agree.

    32 bits tell two answers to one query apart. Of a wrong answer's nothing can be guessed from other rows: they were
    two fifths of a packed report, which keeps none.
    """
    place = torch.arange(x_0.shape[-1], device=x_0.device)
    return [f"{number & (2**32 - 1):08x}" for number in hash_words(place, x_0).sum(-1).tolist()]


def _wrong_cells(answers: Tensor, x_0: Tensor) -> list[tuple[int, ...]]:
    cells: list[list[int]] = [[] for _ in range(len(answers))]
    for row, cell in (answers != x_0).nonzero().tolist():
        cells[row].append(cell)
    return [tuple(row) for row in cells]


def _grid_right(canvas: Tensor, queries: EvaluationSet, query: int) -> bool:
    given, truth = queries.query(query)
    guess = answer_grid(canvas.cpu().numpy().astype(np.uint8), queries.demonstrations(query), given)
    return grid_right([guess], truth)
