"""A checked request becomes a run of the library: the only place where the page meets the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.grid import CELLS, COLORS, SIDE, Grid, to_rows
from factordiff.arc.shapes import answer_grid
from factordiff.composition.composition import Composition
from factordiff.composition.method import Method
from factordiff.engine.decode import decode
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert
from factordiff.networks.named import NamedExpert
from factordiff.sampling.gathered_evidence import gathered
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.sampler import Samples
from factordiff.solving.solver import condition_of, starting_canvas
from factordiff.team.team import Team
from factordiff.web.events import Alternative, AnswerEvent, Familiarity, PassCounts, StartEvent, StepEvent
from factordiff.web.familiarity import KnownTasks
from factordiff.web.limits import API_VERSION
from factordiff.web.observer import Observer, WatchedExpert
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import SolveRequest

Event = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that the loop takes, built and checked before a request is queued."""

    request: SolveRequest
    team: Team
    how: Method
    x_t: Int[Tensor, "item cell"]
    condition: Condition
    reveal: RevealRule
    items: Int[Tensor, " item"]  # random numbers belong to the test's place in its task, as in `solve`
    known: KnownTasks


def prepare(request: SolveRequest, registry: ExpertRegistry) -> Prepared:
    """The parts of the run, the same that the command line would use; what does not fit together is refused."""
    entries = [registry[name] for name in request.names]
    team = Team(
        tuple(NamedExpert(entry.name, entry.expert, entry.objective) for entry in entries),
        request.how.name,
        request.options,
        (SIDE, SIDE),
        device=registry.device,
    )
    condition = condition_of(request.parsed, request.test).to(registry.device)
    return Prepared(
        request,
        team,
        team.method_for(CELLS, condition),
        starting_canvas(request.fixed).to(registry.device),
        condition,
        request.rule,
        torch.tensor([request.test], device=registry.device),
        registry.known,
    )


def perform(prepared: Prepared, emit: Callable[[Event], None], check: Callable[[], None]) -> None:
    """Run the loop; every step is an event, and the answer is the last one. `check` raises to stop it."""
    request, how = prepared.request, prepared.how
    begun = time.perf_counter()
    total = int((prepared.x_t == COLORS.mask).sum())
    start = StartEvent(version=API_VERSION, experts=list(request.names), masked=total)
    emit(start.model_dump())
    observer = Observer(
        lambda said: emit(StepEvent(event="step", **said).model_dump(exclude_unset=True)),
        check,
        request.detail,
        one_by_one=how.selection == "vote",
    )
    experts, composition, reveal, before = _watched(prepared, observer)
    samples = decode(
        replace(how, composition=composition),
        experts,
        prepared.x_t,
        prepared.condition,
        reveal=reveal,
        seed=request.seed,
        items=prepared.items,
        trace=True,
    ).after(before)
    observer.finish(samples.particles[0, :: how.particles])
    grid = _cut(samples, request)
    answer = AnswerEvent(
        version=API_VERSION,
        canvas=samples.x_0[0].tolist(),
        grid=to_rows(grid),
        right=_right(grid, request),
        alternative=_alternative(prepared, grid, check) if request.alternative else None,
        evidence=_familiarity(prepared, check) if request.evidence else None,
        passes=PassCounts(
            nominal=int(samples.nominal_passes.sum()), executed=int(samples.executed_passes.sum())
        ),
        seconds=round(time.perf_counter() - begun, 3),
        trace=None if samples.trace is None else samples.trace.to_json(),
    )
    emit(answer.model_dump())


def _watched(
    prepared: Prepared, observer: Observer
) -> tuple[list[Expert], Composition, RevealRule, Int[Tensor, " item"]]:
    """The parts of the run, observed; evidence that the method asks for is gathered before the first step."""
    composition, before = gathered(
        prepared.how.composition,
        [WatchedExpert(expert, place, observer) for place, expert in enumerate(prepared.team.experts)],
        prepared.x_t,
        prepared.condition,
        seed=prepared.request.seed,
        items=prepared.items,
    )
    return (*observer.watch(prepared.team.experts, composition, prepared.reveal), before)


def _familiarity(prepared: Prepared, check: Callable[[], None]) -> Familiarity:
    """How far the task is from what the experts know."""
    team = prepared.team
    named = list(zip(team.names, team.experts, strict=True))
    return prepared.known.familiarity(prepared.request.parsed, named, team.device, check)


def _alternative(prepared: Prepared, grid: Grid, check: Callable[[], None]) -> Alternative | None:
    """Attempt 2, as the solver has it: the first expert's own answer that differs; nobody after it is asked."""
    team, request = prepared.team, prepared.request
    if team.method == "single":
        return None  # it is this expert's own answer already
    # Only to stop between passes: what an expert does alone is not shown step by step.
    observer = Observer(lambda said: None, check, detail=False)
    for place, name in enumerate(team.names):
        samples = decode(
            team.alone(place).method_for(CELLS, prepared.condition),
            [WatchedExpert(team.experts[place], place, observer)],
            prepared.x_t,
            prepared.condition,
            reveal=prepared.reveal,
            seed=request.seed,
            items=prepared.items,
        )
        own = _cut(samples, request)
        if not np.array_equal(own, grid):
            return Alternative(by=name, grid=to_rows(own), right=_right(own, request))
    return None


def _cut(samples: Samples, request: SolveRequest) -> Grid:
    """The canvas cut to the shape that the demonstrations tell."""
    shown = [(pair.input, pair.output) for pair in request.parsed.demonstrations if pair.output is not None]
    canvas = samples.x_0[0].cpu().numpy().astype(np.uint8)
    return answer_grid(canvas, shown, request.parsed.tests[request.test].input)


def _right(grid: Grid, request: SolveRequest) -> bool | None:
    """Whether a grid is the test's output; None where the task does not say."""
    truth = request.parsed.tests[request.test].output
    return None if truth is None else bool(np.array_equal(grid, truth))
