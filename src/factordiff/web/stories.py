"""Stories that show in a minute what composing experts does.

A story names tasks and settings and never an answer: what is right is found out by solving. `holds` is the outcome
that a story is about, a digit per run (1 right, 0 not right); of its tasks the first on which it comes about is shown.
The captions belong to outcomes too, so that a page never says what did not happen.

What a story is told about is a picture of some kind: a published task's grid, or what a world asks (`world_stories`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from factordiff.arc.grid import COLORS, SIDE
from factordiff.team.file import read_team
from factordiff.web.library import Library
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import read_request
from factordiff.web.run import Check, Emit, perform, prepare

Cell = tuple[int, int]  # row and column
# What a page draws: its `kind`, the canvas' `side` and `mask`, what is `right` in rows, the canvas to `start` with
# (None: all hidden), the `owners` of its cells where they are known, and what only that kind has.
Picture = dict[str, Any]
WATCHABLE = "confidence:25"  # steps enough to see the answer grow, few enough to wait for


@dataclass(frozen=True)
class StoryRun:
    """One run: a shipped team, or experts by name, with what is to be other than the team has it."""

    label: str
    team: str = ""
    experts: tuple[str, ...] = ()
    method: str = ""
    reveal: str = WATCHABLE
    options: Mapping[str, Any] = field(default_factory=dict)
    corrected: bool = False  # whether the cell that the task names is given, with its right color

    def settings(self) -> dict[str, Any]:
        """The run as a request spells it; a team's fitted numbers are for its own method alone."""
        read = read_team(self.team) if self.team else {"experts": self.experts, "method": self.method}
        method = self.method or read["method"]
        fitted = {
            name: value
            for name, value in read.items()
            if name not in ("experts", "method", "reveal", "layout") and method == read["method"]
        }
        return {
            "experts": list(read["experts"]),
            "method": method,
            "reveal": self.reveal,
            **fitted,
            **self.options,
        }

    def request(self, question: StoryQuestion, right: Sequence[Sequence[int]]) -> dict[str, Any]:
        """The settings, and the corrected cell where there is one."""
        return {**self.settings(), "given": _given(question.cell, right) if self.corrected else None}


@runtime_checkable
class StoryQuestion(Protocol):
    """What the runs of a story are asked."""

    kind: str  # grid, mosaic or text

    @property
    def cell(self) -> Cell | None:
        """The one that is corrected where a run corrects one."""

    @property
    def id(self) -> str:
        """What it is called."""

    @property
    def number(self) -> int:
        """Which one of that name."""

    def picture(self, library: Library) -> Picture:
        """What a page draws."""

    def tellable(self, names: Sequence[str], registry: ExpertRegistry) -> bool:
        """Whether the experts of these names are here."""

    def perform(
        self, run: StoryRun, registry: ExpertRegistry, library: Library, emit: Emit, check: Check
    ) -> None:
        """Compute a run; its events end with the answer."""


@dataclass(frozen=True)
class StoryTask:
    """A published task, which of its tests, and the cell that is corrected where a run corrects one."""

    id: str
    number: int = 0
    cell: Cell | None = None
    kind = "grid"

    def picture(self, library: Library) -> Picture:
        """The task, and the right grid on a canvas."""
        task = library.task(self.id, "published", self.number)
        right = task["test"][0]["output"]
        return {"kind": self.kind, "side": SIDE, "mask": COLORS.mask, "right": right, "task": task}

    def tellable(self, names: Sequence[str], registry: ExpertRegistry) -> bool:
        """By those that are served."""
        return all(name in registry.entries for name in names)

    def perform(
        self, run: StoryRun, registry: ExpertRegistry, library: Library, emit: Emit, check: Check
    ) -> None:
        """Solve the task as anybody could ask for it."""
        task = library.task(self.id, "published", self.number)
        body = {"task": task, **run.request(self, task["test"][0]["output"])}
        asked = read_request(json.dumps(body).encode(), registry.names(), Limits())
        perform(prepare(asked, registry), emit, check)


@dataclass(frozen=True)
class Story:
    """Some runs on one question, the order in which they are shown, and what may be said about how they end."""

    name: str
    title: str
    intro: str
    tasks: tuple[StoryQuestion, ...]  # the best one first
    runs: tuple[StoryRun, ...]
    holds: str
    captions: Mapping[str, str]
    acts: tuple[tuple[int, ...], ...]  # runs that are shown at the same time
    both_decide: bool = False  # whether, inside the grid, every expert must decide some cells

    def candidates(self, library: Library) -> list[dict[str, Any]]:
        """Each question's picture with what is asked to tell the story on it: requests, but for the task itself."""
        found = []
        for one in self.tasks:
            picture = one.picture(library)
            requests = [run.request(one, picture["right"]) for run in self.runs]
            fixed = [one.cell if run.corrected else None for run in self.runs]
            found.append(
                {"id": one.id, "number": one.number, "picture": picture, "requests": requests, "fixed": fixed}
            )
        return found

    @property
    def kind(self) -> str:
        """What its pictures are; every question of a story has the same kind."""
        return self.tasks[0].kind

    def spelled(self) -> dict[str, Any]:
        """What a page needs to show it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "title": self.title,
            "intro": self.intro,
            "labels": [run.label for run in self.runs],
            "acts": self.acts,
            "holds": self.holds,
            "captions": dict(self.captions),
        }


def _given(cell: Cell | None, right: Sequence[Sequence[int]]) -> list[list[int | None]]:
    """One cell with its right color, as a request spells it."""
    return [
        [color if (row, column) == cell else None for column, color in enumerate(colors)]
        for row, colors in enumerate(right)
    ]
