"""Stories that show in a minute what composing experts does.

A story names tasks and settings and never an answer: what is right is found out by solving. `holds` is the outcome
that a story is about, a digit per run (1 right, 0 not right); of its tasks the first on which it comes about is shown.
The captions belong to outcomes too, so that a page never says what did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factordiff.team.file import read_team
from factordiff.web.library import Library

Cell = tuple[int, int]  # row and column
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


@dataclass(frozen=True)
class StoryTask:
    """A published task, which of its tests, and the cell that is corrected where a run corrects one."""

    id: str
    number: int = 0
    cell: Cell | None = None


@dataclass(frozen=True)
class Story:
    """Some runs on one task, the order in which they are shown, and what may be said about how they end."""

    name: str
    title: str
    intro: str
    tasks: tuple[StoryTask, ...]  # the best one first
    runs: tuple[StoryRun, ...]
    holds: str
    captions: Mapping[str, str]
    acts: tuple[tuple[int, ...], ...]  # runs that are shown at the same time
    both_decide: bool = False  # whether, inside the grid, every expert must decide some cells

    def candidates(self, library: Library) -> list[dict[str, Any]]:
        """Each task with what is asked to tell the story on it: requests, but for the task itself."""
        found = []
        for one in self.tasks:
            task = library.task(one.id, "published", one.number)
            right = task["test"][0]["output"]
            requests = [
                {**run.settings(), "given": _given(one.cell, right) if run.corrected else None}
                for run in self.runs
            ]
            fixed = [one.cell if run.corrected else None for run in self.runs]
            found.append(
                {"id": one.id, "number": one.number, "task": task, "requests": requests, "fixed": fixed}
            )
        return found

    def spelled(self) -> dict[str, Any]:
        """What a page needs to show it."""
        return {
            "name": self.name,
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
