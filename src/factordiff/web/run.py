"""A checked request becomes a run of the library: the only place where the page meets the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.grid import CELLS, COLORS, SIDE, to_rows
from factordiff.arc.scoring import grid_right
from factordiff.composition.method import Method
from factordiff.experts.condition import Condition
from factordiff.sampling.reveal import RevealRule
from factordiff.solving.question import Question, canvas_of, starting_canvas
from factordiff.solving.solver import answer
from factordiff.team.router import with_router
from factordiff.team.team import Team
from factordiff.web import events
from factordiff.web.familiarity import KnownTasks
from factordiff.web.limits import API_VERSION
from factordiff.web.observer import Observer, WatchedExpert, decode_watched
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import SolveRequest

Event = dict[str, Any]
Emit = Callable[[Event], None]
Check = Callable[[], None]
Work = Callable[[Emit, Check], None]  # what a worker does: events out, and a question whether to go on


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that the loop takes, built and checked before a request is queued."""

    request: SolveRequest
    team: Team
    question: Question
    how: Method
    x_t: Int[Tensor, "item cell"]
    condition: Condition
    reveal: RevealRule
    items: Int[Tensor, " item"]  # random numbers belong to the test's place in its task, as in `solve`
    known: KnownTasks


def prepare(request: SolveRequest, registry: ExpertRegistry) -> Prepared:
    """The parts of the run, the same that the command line would use; what does not fit together is refused."""
    team = with_router(
        Team(
            tuple(registry[name] for name in request.names),
            request.how.name,
            request.options,
            (SIDE, SIDE),
            reveal=request.rule,
            device=registry.device,
        )
    )
    question = Question(request.parsed, request.test, request.seed, request.fixed)
    condition = question.condition.to(registry.device)
    return Prepared(
        request,
        team,
        question,
        team.method_for(CELLS, condition),
        starting_canvas(request.fixed).to(registry.device),
        condition,
        request.rule,
        torch.tensor([request.test], device=registry.device),
        registry.known,
    )


def perform(prepared: Prepared, emit: Emit, check: Check) -> None:
    """Compute the attempt that was asked for; its events end with the answer. `check` raises to stop it."""
    total = int((prepared.x_t == COLORS.mask).sum())
    start = events.StartEvent(version=API_VERSION, experts=list(prepared.request.names), masked=total)
    emit(start.model_dump())
    if prepared.request.attempt == 1:
        _first_attempt(prepared, emit, check)
    else:
        _second_attempt(prepared, emit, check)


def _first_attempt(prepared: Prepared, emit: Emit, check: Check) -> None:
    """Run the loop; every step is an event."""
    request, how = prepared.request, prepared.how
    begun = time.perf_counter()
    observer = Observer(
        lambda said: emit(events.StepEvent(event="step", **said).model_dump(exclude_unset=True)),
        check,
        request.detail,
        one_by_one=how.paths == "alone",
    )
    samples = decode_watched(
        how,
        prepared.team.experts,
        prepared.x_t,
        prepared.condition,
        prepared.reveal,
        observer,
        seed=request.seed,
        items=prepared.items,
        trace=True,
    )
    grid, truth = prepared.question.cut(canvas_of(samples)), prepared.question.test.output
    event = events.AnswerEvent(
        version=API_VERSION,
        canvas=samples.x_0[0].tolist(),
        grid=to_rows(grid),
        right=None if truth is None else grid_right([grid], truth),
        evidence=_familiarity(prepared, check) if request.evidence else None,
        passes=events.PassCounts(
            nominal=int(samples.nominal_passes.sum()), executed=int(samples.executed_passes.sum())
        ),
        seconds=round(time.perf_counter() - begun, 3),
        trace=None if samples.trace is None else samples.trace.to_json(),
    )
    emit(event.model_dump())


def _second_attempt(prepared: Prepared, emit: Emit, check: Check) -> None:
    """What `solve` gives as attempt 2, with how far it is; attempt 1 is answered once more on the way there."""
    begun = time.perf_counter()
    # Only to stop between passes: what is tried on the way is not shown step by step.
    observer = Observer(lambda said: None, check, detail=False)
    members = tuple(
        replace(member, expert=WatchedExpert(member.expert, place, observer))
        for place, member in enumerate(prepared.team.members)
    )

    def on_step(done: int, total: int) -> None:
        emit(events.ProgressEvent(done=done, total=total).model_dump())

    found = answer(prepared.question, replace(prepared.team, members=members), 2, on_step)
    second, truth = found.second, found.truth
    event = events.SecondAttemptEvent(
        version=API_VERSION,
        grid=None if second is None else to_rows(second.grid),
        reason=None if second is None else second.reason,
        right=None if second is None or truth is None else grid_right([second.grid], truth),
        executed_passes=found.executed_passes,
        seconds=round(time.perf_counter() - begun, 3),
    )
    emit(event.model_dump())


def _familiarity(prepared: Prepared, check: Callable[[], None]) -> events.Familiarity:
    """How far the task is from what the experts know."""
    team = prepared.team
    named = list(zip(team.names, team.experts, strict=True))
    return prepared.known.familiarity(prepared.request.parsed, named, team.device, check)
