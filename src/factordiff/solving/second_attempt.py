"""Attempt 2: the best other answer of the team.

The team is asked the same task four more times, reflected: mirrored, flipped and along both diagonals. Turned back, the
answer that is given most often, other than attempt 1, is attempt 2. A rule that holds for a task holds for its mirror
image, but the experts are not the same there: where they err on one they often do not err on the other. Chosen on
validation among other compositions, single experts, draws and fewer demonstrations by how often two attempts hold the
truth (benchmarks/second_attempt.py; docs/log.md has the figures).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from factordiff.arc.grid import SIDE, Grid
from factordiff.arc.symmetry import inverse, transform, transform_task
from factordiff.experts.condition import joined
from factordiff.sampling.path import PathStep, path_steps
from factordiff.sampling.samples import Samples
from factordiff.solving.question import Question, canvas_of, starting_canvas
from factordiff.state import SamplerState
from factordiff.team.team import Team

REFLECTIONS = (4, 5, 6, 7)  # mirror, transpose, flip, anti-transpose

OnStep = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class SecondAttempt:
    """Another answer, how it came about, and what it cost."""

    grid: Grid
    reason: str  # ends the sentence "attempt 2 is what the team answers ..."
    executed_passes: int

    def __repr__(self) -> str:
        height, width = self.grid.shape
        return f"SecondAttempt({height}x{width}, {self.reason}; {self.executed_passes} passes)"


def second_attempt(
    team: Team, question: Question, first: Samples, grid: Grid, on_step: OnStep | None = None
) -> SecondAttempt | None:
    """The team's best answer other than `grid`, which is cut from `first`; None where it has no other.

    Where all reflections agree with attempt 1, or cells are given (which have no place in a reflection before the
    answer's shape is known), it is what follows from the second choice at the cell where the team was least sure.
    """
    passes = 0
    if not question.given:
        answers, passes = reflected_answers(team, question, REFLECTIONS, on_step)
        chosen = most_frequent_other(answers, grid)
        if chosen is not None:
            times = sum(np.array_equal(one, chosen) for one in answers)
            reason = f"to {times} of {len(answers)} reflections of the task"
            return SecondAttempt(chosen, reason, passes)
    other = from_second_choice(team, question, first, grid, on_step)
    return other and replace(other, executed_passes=passes + other.executed_passes)


def reflected_answers(
    team: Team, question: Question, symmetries: Sequence[int], on_step: OnStep | None = None
) -> tuple[list[Grid], int]:
    """The answers to the task under each of these symmetries, turned back, and the passes of all."""
    asked = [
        replace(question, task=transform_task(question.task, symmetry), given=None) for symmetry in symmetries
    ]
    samples = replace(team, layout=(SIDE, SIDE)).sample(
        starting_canvas(None).repeat(len(asked), 1),
        joined([one.condition for one in asked]),
        seed=question.seed,
        items=torch.full((len(asked),), question.number),
        on_step=on_step,
    )
    canvases = samples.x_0.cpu().numpy().astype(np.uint8)
    grids = [
        transform(one.cut(canvas), inverse(symmetry))
        for one, canvas, symmetry in zip(asked, canvases, symmetries, strict=True)
    ]
    return grids, int(samples.executed_passes.sum())


def most_frequent_other(answers: Sequence[Grid], grid: Grid) -> Grid | None:
    """The most frequent of the answers that differ from this one, the earliest of equals; None if none differs."""
    others = [one for one in answers if not np.array_equal(one, grid)]
    return max(others, key=lambda one: sum(np.array_equal(one, other) for other in others), default=None)


@torch.no_grad()
def from_second_choice(
    team: Team, question: Question, first: Samples, grid: Grid, on_step: OnStep | None = None
) -> SecondAttempt | None:
    """What the team fills in around its second choice at the cell of the answer where it was least sure."""
    found = _least_sure(first, grid)
    if found is None:
        return None
    cell, path_step = found
    x_t = torch.tensor([path_step.before], device=team.device)
    condition = question.condition.to(team.device)
    said = torch.stack([expert.log_probs(x_t, expert.encode(condition)) for expert in team.experts])
    composition = replace(team, layout=(SIDE, SIDE)).method_for(x_t.shape[1], condition).composition
    composed = (
        composition(said, SamplerState.begin(x_t, said.shape[-1], len(team))).log_probs[0, cell].clone()
    )
    composed[path_step.after[cell]] = -torch.inf
    place = divmod(cell, SIDE)
    given = {**(question.given or {}), place: int(composed.argmax())}
    other = replace(question, given=given)
    samples = other.ask(team, on_step=on_step)
    answer = question.cut(canvas_of(samples))
    if np.array_equal(answer, grid):
        return None
    reason = f"with its second choice at row {place[0]}, column {place[1]}, where it was least sure"
    return SecondAttempt(answer, reason, len(team) + int(samples.executed_passes.sum()))


def _least_sure(first: Samples, grid: Grid) -> tuple[int, PathStep] | None:
    """The cell of the answer that was revealed with the smallest margin, and the step that revealed it."""
    if first.trace is None or len(first.particles[0]) > 1:
        return None  # a vote or particles: no single path with margins of its own
    found: tuple[float, int, PathStep] | None = None
    margins = [step.margin[0][0] for step in first.trace.steps if step.revealed[0][0]]
    for margin, path_step in zip(margins, path_steps(first), strict=True):
        for cell in path_step.revealed:
            row, column = divmod(cell, SIDE)
            if row < grid.shape[0] and column < grid.shape[1]:
                sure = margin[cell]
                if sure is not None and (found is None or sure < found[0]):
                    found = sure, cell, path_step
    return None if found is None else found[1:]
