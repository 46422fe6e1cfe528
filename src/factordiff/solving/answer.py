"""What a team answers: two attempts per test, who decided each cell, what each expert says alone, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from jaxtyping import Int

from factordiff.arc.grid import SIDE, Canvas, Grid, Shape, to_rows
from factordiff.arc.scoring import grid_right
from factordiff.arc.svg import Svg, column_svg, routing_svg, row_svg
from factordiff.sampling.path import decided_by
from factordiff.sampling.sampler import Samples
from factordiff.sampling.trace import Trace
from factordiff.solving.explanation import Explanation, explain
from factordiff.solving.question import Question, canvas_of
from factordiff.solving.second_attempt import SecondAttempt
from factordiff.team.team import Team


@dataclass(frozen=True, eq=False)
class RoutingMap:
    """Who decided each cell of an answer: the place of the expert in `experts`, or -1 for a given cell."""

    labels: Int[np.ndarray, "row column"]
    experts: tuple[str, ...]

    def shares(self) -> dict[str, int]:
        """How many cells each expert decided."""
        return {name: int((self.labels == index).sum()) for index, name in enumerate(self.experts)}

    def _repr_svg_(self) -> str:
        return routing_svg(self.labels, self.experts)

    def __repr__(self) -> str:
        shares = ", ".join(f"{name}: {count}" for name, count in self.shares().items())
        return f"RoutingMap({_size(self.labels)}; {shares})"


@dataclass(frozen=True, eq=False)
class Alone:
    """What one expert answers on its own."""

    name: str
    canvas: Canvas
    grid: Grid
    executed_passes: int

    def _repr_svg_(self) -> str:
        return row_svg([(self.name, self.grid)])

    def __repr__(self) -> str:
        return f"Alone({self.name}, {_size(self.grid)}, {self.executed_passes} passes)"


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one test input."""

    team: Team
    question: Question
    canvas: Canvas
    grid: Grid  # attempt 1: the composition
    second: SecondAttempt | None  # attempt 2; None where it was left out, or there is no other answer
    samples: Samples

    @property
    def task(self) -> str:
        """The id of the task."""
        return self.question.task.id

    @property
    def number(self) -> int:
        """Which test of the task."""
        return self.question.number

    @property
    def query(self) -> Grid:
        """The test's input."""
        return self.question.test.input

    @property
    def truth(self) -> Grid | None:
        """The test's output, where the task holds it."""
        return self.question.test.output

    @property
    def alternative(self) -> Grid:
        """Attempt 2, or attempt 1 once more where there is no other."""
        return self.grid if self.second is None else self.second.grid

    @property
    def attempts(self) -> tuple[Grid, Grid]:
        """Both attempts, as the ARC Prize takes them."""
        return self.grid, self.alternative

    @cached_property
    def alone(self) -> tuple[Alone, ...]:
        """What each expert answers on its own: asked when this is first looked at."""
        if self.team.method == "single":
            return (Alone(self.team.names[0], self.canvas, self.grid, 0),)
        answers = []
        for index, name in enumerate(self.team.names):
            samples = self.question.ask(self.team.alone(index))
            canvas = canvas_of(samples)
            passes = int(samples.executed_passes.sum())
            answers.append(Alone(name, canvas, self.question.cut(canvas), passes))
        return tuple(answers)

    @property
    def first_right(self) -> bool | None:
        """Whether attempt 1 is right; None where the truth is not known."""
        return None if self.truth is None else grid_right([self.grid], self.truth)

    @property
    def right(self) -> bool | None:
        """Whether one of the attempts is right; None where the truth is not known."""
        return None if self.truth is None else grid_right(self.attempts, self.truth)

    @property
    def trace(self) -> Trace | None:
        """What happened, step by step; None for a vote, which has no single path."""
        return self.samples.trace

    @property
    def shape(self) -> Shape:
        """Height and width of attempt 1."""
        return self.grid.shape[0], self.grid.shape[1]

    @cached_property
    def routing(self) -> RoutingMap | None:
        """Who decided each cell; None for methods that do not route."""
        labels = None if self.trace is None else decided_by(self.samples)
        if labels is None:
            return None
        canvas = np.array(labels, dtype=np.int64).reshape(SIDE, SIDE)
        return RoutingMap(canvas[: self.shape[0], : self.shape[1]], self.team.names)

    @property
    def nominal_passes(self) -> int:
        """Passes by the method's definition, of the composition alone."""
        return int(self.samples.nominal_passes.sum())

    @property
    def executed_passes(self) -> int:
        """Passes that were really run, for both attempts."""
        second = 0 if self.second is None else self.second.executed_passes
        return int(self.samples.executed_passes.sum()) + second

    def explain(self) -> Explanation:
        """Who decided each cell, with which margin, and what the others said: asks the experts once more."""
        return explain(self.team, self.samples, self.question.condition.to(self.team.device), self.shape)

    def spelled(self) -> dict[str, list[list[int]]]:
        """The answer as a submission spells it."""
        return {"attempt_1": to_rows(self.grid), "attempt_2": to_rows(self.alternative)}

    def _repr_svg_(self) -> str:
        """Input, attempts and truth, and below them who decided: a picture, which every viewer of notebooks shows."""
        panels = [("input", self.query), ("attempt 1", self.grid)]
        if self.second is not None:
            panels.append(("attempt 2", self.second.grid))
        if self.truth is not None:
            panels.append(("truth", self.truth))
        drawn = [row_svg(panels)]
        if self.routing is not None:
            drawn.append(routing_svg(self.routing.labels, self.routing.experts, title="decided by"))
        return column_svg(drawn)

    def __repr__(self) -> str:
        verdict = {None: "", True: ", right", False: ", wrong"}[self.right]
        second = "" if self.second is None else f" and {_size(self.second.grid)}"
        return (
            f"Answer(task {self.task}, test {self.number}: {_size(self.grid)}{second}{verdict}; "
            f"{self.executed_passes} passes)"
        )


@dataclass(frozen=True, eq=False)
class TaskAnswers(Sequence[Answer]):
    """The answers to all tests of a task, in order."""

    task: str
    answers: tuple[Answer, ...]

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, index: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[index]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def right(self) -> bool | None:
        """Whether every test is right; None where a truth is not known."""
        verdicts = [answer.right for answer in self.answers]
        return None if None in verdicts else all(verdicts)

    def submission(self) -> list[dict[str, list[list[int]]]]:
        """The task's entry of an ARC Prize submission."""
        return [answer.spelled() for answer in self.answers]

    def _repr_svg_(self) -> str:
        return column_svg([Svg(answer._repr_svg_()) for answer in self.answers])

    def __repr__(self) -> str:
        return f"TaskAnswers({self.task}: {', '.join(map(repr, self.answers))})"


@dataclass(frozen=True)
class Refusal:
    """A task that was not tried, and the sentence that says why and where."""

    task: str
    reason: str

    def __repr__(self) -> str:
        return f"Refusal({self.task}: {self.reason})"


def _size(grid: np.ndarray) -> str:
    return f"{grid.shape[0]}x{grid.shape[1]}"
