"""One test of a task, as a team is asked it: what the experts are told, where they begin, how their canvas is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from factordiff.arc.conditions import condition_from, inside
from factordiff.arc.grid import CELLS, COLORS, SIDE, Canvas, Grid, check_colors, to_canvas
from factordiff.arc.shapes import answer_grid
from factordiff.arc.task import Pair, Task
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.sampling.samples import Samples
from factordiff.team.team import Team

Given = Mapping[tuple[int, int], int]  # (row, column) of a cell, and its color


@dataclass(frozen=True, eq=False)
class Question:
    """A test of a task with what else decides its answer: the seed, and cells that are given."""

    task: Task
    number: int
    seed: int = 0
    given: Given | None = None

    @property
    def test(self) -> Pair:
        """The test itself."""
        return self.task.tests[self.number]

    @cached_property
    def condition(self) -> Condition:
        """What the experts are told."""
        return condition_of(self.task, self.number)

    def ask(
        self, team: Team, trace: bool = False, on_step: Callable[[int, int], None] | None = None
    ) -> Samples:
        """The team's canvas. Random numbers belong to the test's place in its task."""
        check_colors(team.names, team.experts[0].vocabulary)
        return replace(team, layout=(SIDE, SIDE)).sample(
            starting_canvas(self.given),
            self.condition,
            seed=self.seed,
            items=torch.tensor([self.number]),
            trace=trace,
            on_step=on_step,
        )

    def cut(self, canvas: Canvas) -> Grid:
        """The canvas cut to the shape that the demonstrations tell."""
        shown = [(pair.input, pair.output) for pair in self.task.demonstrations if pair.output is not None]
        return answer_grid(canvas, shown, self.test.input)

    def __repr__(self) -> str:
        given = f", {len(self.given)} cells given" if self.given else ""
        return f"Question(task {self.task.id}, test {self.number}, seed {self.seed}{given})"


def condition_of(task: Task, number: int) -> Condition:
    """What the experts are told about one test of a task."""
    query = task.tests[number].input
    grids = [(pair.input, pair.output) for pair in task.demonstrations if pair.output is not None]
    pairs = [(query, query), *grids]  # only the input of the first is looked at
    canvases = torch.from_numpy(np.stack([np.stack([to_canvas(grid) for grid in pair]) for pair in pairs]))
    shapes = torch.tensor([[grid.shape for grid in pair] for pair in pairs])
    return condition_from(canvases[None], inside(shapes[None]))


def starting_canvas(given: Given | None) -> torch.Tensor:
    """One canvas, masked but for the given cells."""
    canvas = torch.full((1, CELLS), COLORS.mask)
    if not isinstance(given, Mapping | None):
        raise InvalidInput(
            f"given: expected a mapping from (row, column) to color, got {type(given).__name__}"
        )
    for cell, color in (given or {}).items():
        if not (isinstance(cell, tuple) and len(cell) == 2 and all(map(_is_whole, cell))):
            raise InvalidInput(f"given: expected cells as (row, column), got {cell!r}")
        row, column = cell
        if not (0 <= row < SIDE and 0 <= column < SIDE):
            raise InvalidInput(f"given: cell ({row}, {column}) lies outside the {SIDE}x{SIDE} canvas")
        if not _is_whole(color) or not 0 <= color < COLORS.size:
            raise InvalidInput(f"given: cell ({row}, {column}): expected a color 0..9, got {color!r}")
        canvas[0, row * SIDE + column] = color
    return canvas


def canvas_of(samples: Samples) -> Canvas:
    """The answered canvas of a single question."""
    return samples.x_0[0].cpu().numpy().astype(np.uint8)


def _is_whole(number: object) -> bool:
    """Whether something is a whole number, numpy's included; a fraction would be cut in silence."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
