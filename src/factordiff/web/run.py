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
from factordiff.composition.method import Method, spec
from factordiff.engine.decode import decode
from factordiff.experts.condition import Condition
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.rules import reveal_rule
from factordiff.sampling.sampler import Samples
from factordiff.solving.members import Member
from factordiff.solving.solver import condition_of, starting_canvas
from factordiff.solving.team import Team
from factordiff.web.limits import API_VERSION
from factordiff.web.observer import Observer, WatchedExpert
from factordiff.web.request import Reveal, SolveRequest
from factordiff.web.roster import Roster

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


def prepare(request: SolveRequest, roster: Roster) -> Prepared:
    """The parts of the run, the same that the command line would use; what does not fit together is refused."""
    entries = [roster[name] for name in request.experts]
    declared, asked = spec(request.method), request.particles
    settings = {
        "temperatures": request.temperatures,
        "factors": request.factors,
        "softness": request.softness,
        "particles": asked,
        "runs": asked,
    }
    taken = {option.name: settings[option.name] for option in declared.options if option.name in settings}
    team = Team(
        tuple(Member(entry.name, entry.expert, entry.objective) for entry in entries),
        request.method,
        declared.check(taken, request.experts),
        (SIDE, SIDE),
        device=roster.device,
    )
    condition = condition_of(request.task, request.test).to(roster.device)
    given = {(cell // SIDE, cell % SIDE): color for cell, color in request.given}
    return Prepared(
        request,
        team,
        team.how(CELLS, condition),
        starting_canvas(given).to(roster.device),
        condition,
        rule_of(request.reveal),
        torch.tensor([request.test], device=roster.device),
    )


def rule_of(reveal: Reveal) -> RevealRule:
    """The reveal rule of that name; `fast` and `exact` are the command line's."""
    match reveal.rule:
        case "confidence":
            return ByConfidence(reveal.steps)
        case "ancestral":
            return Ancestral(reveal.steps)
        case "margin":
            return ByMargin(reveal.threshold)
        case "product" | "frechet":
            return ByProduct(reveal.threshold, "product" if reveal.rule == "product" else "frechet")
        case "entropy":
            return ByEntropy(reveal.gamma)
        case "exact":
            return reveal_rule("exact")
        case _:
            return reveal_rule("fast")


def perform(prepared: Prepared, emit: Callable[[Event], None], check: Callable[[], None]) -> None:
    """Run the loop; every step is an event, and the answer is the last one. `check` raises to stop it."""
    request, how = prepared.request, prepared.how
    begun = time.perf_counter()
    total = int((prepared.x_t == COLORS.mask).sum())
    emit({"event": "start", "version": API_VERSION, "experts": list(request.experts), "masked": total})
    observer = Observer(
        lambda said: emit({"event": "step", **said}),
        check,
        request.detail,
        one_by_one=how.selection == "vote",
    )
    experts, composition, reveal = observer.watch(prepared.team.experts, how.composition, prepared.reveal)
    samples = decode(
        replace(how, composition=composition),
        experts,
        prepared.x_t,
        prepared.condition,
        reveal=reveal,
        seed=request.seed,
        items=prepared.items,
        trace=True,
    )
    observer.finish(samples.particles[0, :: how.particles])
    grid = _cut(samples, request)
    emit(
        {
            "event": "answer",
            "version": API_VERSION,
            "canvas": samples.x_0[0].tolist(),
            "grid": to_rows(grid),
            "right": _right(grid, request),
            "alternative": _alternative(prepared, grid, check) if request.alternative else None,
            "passes": {
                "nominal": int(samples.nominal_passes.sum()),
                "executed": int(samples.executed_passes.sum()),
            },
            "seconds": round(time.perf_counter() - begun, 3),
            "trace": None if samples.trace is None else samples.trace.to_json(),
        }
    )


def _alternative(prepared: Prepared, grid: Grid, check: Callable[[], None]) -> Event | None:
    """Attempt 2, as the solver has it: the first expert's own answer that differs; nobody after it is asked."""
    team, request = prepared.team, prepared.request
    if team.method == "single":
        return None  # it is this expert's own answer already
    # Only to stop between passes: what an expert does alone is not shown step by step.
    observer = Observer(lambda said: None, check, detail=False)
    for place, name in enumerate(team.names):
        samples = decode(
            team.alone(place).how(CELLS, prepared.condition),
            [WatchedExpert(team.experts[place], place, observer)],
            prepared.x_t,
            prepared.condition,
            reveal=prepared.reveal,
            seed=request.seed,
            items=prepared.items,
        )
        own = _cut(samples, request)
        if not np.array_equal(own, grid):
            return {"by": name, "grid": to_rows(own), "right": _right(own, request)}
    return None


def _cut(samples: Samples, request: SolveRequest) -> Grid:
    """The canvas cut to the shape that the demonstrations tell."""
    shown = [(pair.input, pair.output) for pair in request.task.demonstrations if pair.output is not None]
    canvas = samples.x_0[0].cpu().numpy().astype(np.uint8)
    return answer_grid(canvas, shown, request.task.tests[request.test].input)


def _right(grid: Grid, request: SolveRequest) -> bool | None:
    """Whether a grid is the test's output; None where the task does not say."""
    truth = request.task.tests[request.test].output
    return None if truth is None else bool(np.array_equal(grid, truth))
