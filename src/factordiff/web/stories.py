"""Stories that show in a minute what composing experts does.

A story names tasks and settings and never an answer: what is right is found out by solving. `holds` is the outcome
that a story is about, a digit per run (1 right, 0 not right); of its tasks the first on which it comes about is shown.
The captions belong to outcomes too, so that a page never says what did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factordiff.errors import FactorDiffError
from factordiff.solving.team_file import read_team
from factordiff.web.library import Library
from factordiff.web.registry import ExpertRegistry

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
    fixed: tuple[Cell, ...] = ()  # cells that are given with their right color

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
class Story:
    """Some runs on one task, the order in which they are shown, and what may be said about how they end."""

    name: str
    title: str
    intro: str
    tasks: tuple[str, ...]  # published tasks, the best one first; `id/1` is a task's second test
    runs: tuple[StoryRun, ...]
    holds: str
    captions: Mapping[str, str]
    acts: tuple[tuple[int, ...], ...]  # runs that are shown at the same time
    both_decide: bool = False  # whether, inside the grid, every expert must decide some cells

    def bodies(self, task: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The requests of the runs on a task, as ARC's JSON spells it."""
        return [{"task": task, **run.settings(), "given": _given(run.fixed, task)} for run in self.runs]

    def candidates(self, library: Library) -> list[dict[str, Any]]:
        """Each task with the requests that tell the story on it."""
        found = []
        for spelled in self.tasks:
            task_id, _, number = spelled.partition("/")
            task = library.task(task_id, "published", int(number or 0))
            found.append(
                {"id": task_id, "number": int(number or 0), "task": task, "requests": self.bodies(task)}
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
            "fixed": [list(map(list, run.fixed)) for run in self.runs],
        }


def _given(fixed: Sequence[Cell], task: Mapping[str, Any]) -> list[list[int | None]] | None:
    """The fixed cells with their right colors, as a request spells them."""
    if not fixed:
        return None
    right = task["test"][0]["output"]
    return [
        [color if (row, column) in fixed else None for column, color in enumerate(colors)]
        for row, colors in enumerate(right)
    ]


def tellable(stories: Sequence[Story], registry: ExpertRegistry) -> list[Story]:
    """The stories whose experts are all here."""

    def told(story: Story) -> bool:
        try:
            experts = {name for run in story.runs for name in run.settings()["experts"]}
        except FactorDiffError:  # a team whose experts are not here, or others by now
            return False
        return experts <= registry.entries.keys()

    return [story for story in stories if told(story)]


def stories_for(registry: ExpertRegistry, library: Library) -> list[dict[str, Any]]:
    """The stories that these experts can tell, with their tasks and requests."""
    from factordiff.web.story_list import STORIES

    return [
        {**story.spelled(), "candidates": story.candidates(library)} for story in tellable(STORIES, registry)
    ]
