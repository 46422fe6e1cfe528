"""One answer's own path through a trace: which cells were revealed when, by whom, and what was known before."""

from __future__ import annotations

from dataclasses import dataclass

from factordiff.sampling.sampler import Samples
from factordiff.sampling.trace import Trace

NOBODY = -1


@dataclass(frozen=True)
class PathStep:
    """One step of the path of a single answer."""

    before: list[int]  # the cells when the experts were asked
    after: list[int]
    revealed: list[int]
    routing: list[int] | None


def path_steps(samples: Samples, item: int = 0) -> list[PathStep]:
    """The steps of an item's answer, in order.

    Among particles it is the path of the one that was returned: followed back through the resamplings.
    """
    trace = samples.trace
    if trace is None:
        return []
    particle = _returned(samples, item)
    path = []
    for step in reversed(trace.steps):
        if step.ancestors is not None:
            particle = step.ancestors[item][particle]
        path.append((step, particle))
    before, steps = trace.start[item], []
    for step, particle in reversed(path):
        revealed, after = step.revealed[item][particle], step.x[item][particle]
        if not revealed:
            before = after
            continue
        margin = step.margin[item][particle]
        # What a repair took back is masked again, and was asked about: it has a margin, as what was revealed has.
        asked = [
            trace.values if cell in revealed or margin[cell] is not None else value
            for cell, value in enumerate(before)
        ]
        routing = None if step.routing is None else step.routing[item][particle]
        steps.append(PathStep(asked, after, revealed, routing))
        before = after
    return steps


def decided_by(samples: Samples, item: int = 0) -> list[int] | None:
    """For every cell the expert that decided it, -1 where none did; None where the method does not say."""
    steps = path_steps(samples, item)
    if not steps or any(path_step.routing is None for path_step in steps):
        return None
    labels = [NOBODY] * len(steps[0].before)
    for path_step in steps:
        for cell in path_step.revealed:
            labels[cell] = NOBODY if path_step.routing is None else path_step.routing[cell]
    return labels


def filling(trace: Trace, start: list[int]) -> list[tuple[list[int], list[int]]]:
    """The first item's cells, from `start` on, and who decided each: before the first step and after every one."""
    cells, speakers = list(start), [NOBODY] * len(start)
    scenes = [(list(cells), list(speakers))]
    for step in trace.steps:
        for cell in step.revealed[0][0]:
            cells[cell] = step.x[0][0][cell]
            speakers[cell] = step.routing[0][0][cell] if step.routing is not None else NOBODY
        scenes.append((list(cells), list(speakers)))
    return scenes


def _returned(samples: Samples, item: int) -> int:
    """The particle that is the answer, or the nearest to it (a vote may differ from all)."""
    agreement = (samples.particles[item] == samples.x_0[item]).sum(-1)
    return int(agreement.argmax())
