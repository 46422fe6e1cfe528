"""Routing maps: who decided each cell of an answer, step by step if asked, beside what each expert says alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import COLORS
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.experts.expert import Expert
from factordiff.sampling.path import NOBODY, decided_by
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.sampling.trace import Trace


def routing_maps(
    experts: Sequence[Expert],
    queries: EvaluationSet,
    index: Sequence[int],
    temperatures: Sequence[float] | None = None,
    steps: int = 128,
    frames: int = 0,
) -> list[dict[str, Any]]:
    """One map per query, as plain lists; `frames` states of the way are kept, evenly spread."""
    if not index:
        return []
    which = torch.tensor(list(index), device=queries.queries.device)
    condition, x_0 = queries.condition(which), queries.x_0[which]
    start = torch.full_like(x_0, COLORS.mask)
    rule = ByConfidence(steps)
    routed = sample(
        experts, Routing(temperatures=temperatures), start, condition, reveal=rule, items=which, trace=True
    )
    alone = [
        sample([expert], Single(), start, condition, reveal=rule, items=which).x_0.tolist()
        for expert in experts
    ]
    assert routed.trace is not None
    shapes = torch.stack([queries.input_shapes[which], queries.output_shapes[which]], dim=1).tolist()
    return [
        {
            "query": query,
            "task": queries.tasks[int(queries.task_indices[query])],
            "shapes": shapes[row],
            "input": condition.query[row].tolist(),
            "truth": x_0[row].tolist(),
            "answer": routed.x_0[row].tolist(),
            "alone": [answers[row] for answers in alone],
            "decided": decided_by(routed, row),
            "frames": way(routed.trace, row, frames),
        }
        for row, query in enumerate(index)
    ]


def way(trace: Trace, item: int, frames: int) -> list[dict[str, list[int]]]:
    """States after evenly spread steps, each with the routing map of the cells that were masked before it."""
    if frames < 1:
        return []
    last = len(trace.steps) - 1
    kept = sorted({round(last * frame / max(frames - 1, 1)) for frame in range(frames)})
    return [{"x": trace.steps[step].x[item][0], "z": _routing(trace, step, item)} for step in kept]


def _routing(trace: Trace, step: int, item: int) -> list[int]:
    routing = trace.steps[step].routing
    return [NOBODY] * len(trace.start[item]) if routing is None else routing[item][0]
