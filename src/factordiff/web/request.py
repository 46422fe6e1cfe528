"""What a client may ask of a grid: a checked request, or a sentence about the first thing that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from factordiff.arc.grid import SIDE
from factordiff.arc.task import Task, parse_task
from factordiff.errors import InvalidInput
from factordiff.solving.solver import check_task
from factordiff.web.asked_method import AskedMethod, validated, with_options
from factordiff.web.limits import Limits

Color = Annotated[int, Field(ge=0, le=9)]
Grid = Annotated[
    list[Annotated[list[Color], Field(min_length=1, max_length=SIDE)]], Field(min_length=1, max_length=SIDE)
]
FixedRow = Annotated[list[Color | None], Field(max_length=SIDE)]


class ShownPair(BaseModel):
    """An input and its output."""

    model_config = ConfigDict(strict=True)
    input: Grid
    output: Grid


class AskedPair(BaseModel):
    """An input, and the right output where it is known."""

    model_config = ConfigDict(strict=True)
    input: Grid
    output: Grid | None = None


class SpelledTask(BaseModel):
    """A task as ARC's JSON spells it."""

    model_config = ConfigDict(strict=True)
    # The first fault ends the reading: a list of a hundred thousand would keep everybody else waiting.
    train: list[ShownPair] = Field(min_length=1, fail_fast=True)
    test: list[AskedPair] = Field(min_length=1, fail_fast=True)


class SolveRequest(AskedMethod):
    """One test input to be answered, and how."""

    task: SpelledTask
    test: int = Field(0, ge=0, description="Which of the task's tests.")
    given: list[FixedRow] | None = Field(
        None,
        max_length=SIDE,
        description="Rows of the canvas: a color where a cell is fixed, null elsewhere.",
    )
    attempt: Literal[1, 2] = Field(
        1, description="2: the team's best other answer, at about five times the cost, and no steps."
    )
    evidence: bool = Field(
        False, description="How well the experts predict the task's own demonstrations, beside known tasks."
    )

    @cached_property
    def parsed(self) -> Task:
        """The task itself."""
        return parse_task(self.task.model_dump(exclude_none=True), "yours", "body")

    @property
    def fixed(self) -> dict[tuple[int, int], int]:
        """The cells that were fixed: (row, column) to color."""
        rows = enumerate(self.given or ())
        return {
            (row, column): color
            for row, colors in rows
            for column, color in enumerate(colors)
            if color is not None
        }


def request_model(limits: Limits) -> type[SolveRequest]:
    """The request with the options of every method that is offered, within these limits."""
    return with_options(SolveRequest, limits)


def read_request(body: bytes, known: Sequence[str], limits: Limits) -> SolveRequest:
    """The request that a body spells; `known` are the names of the experts there are."""
    request = validated(request_model(limits), body)
    for name, pairs, most in (
        ("train", request.task.train, limits.demonstrations),
        ("test", request.task.test, limits.tests),
    ):
        if len(pairs) > most:
            raise InvalidInput(f"task, {name}: {len(pairs)} pairs, expected at most {most}")
    check_task(request.parsed)
    if request.test >= len(request.task.test):
        last = len(request.task.test) - 1
        raise InvalidInput(f"test: expected a whole number from 0 to {last}, got {request.test}")
    request.check_method(known, limits)
    return request
