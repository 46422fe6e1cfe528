"""Stories as recordings: every run solved once, its events kept, so that a page needs no server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factordiff.arc.grid import SIDE
from factordiff.web.library import Library
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import read_request
from factordiff.web.run import Event, perform, prepare
from factordiff.web.stories import Cell, Story, StoryTask

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Recording:
    """A story on the task that was chosen for it; `held` says whether what it is about came about."""

    story: Story
    candidate: dict[str, Any]  # the task and the requests, as `Story.candidates` gives them
    runs: list[list[Event]]
    held: bool

    @property
    def outcome(self) -> str:
        """A digit per run: 1 where it is right."""
        return "".join(str(int(events[-1]["right"] is True)) for events in self.runs)

    def spelled(self) -> dict[str, Any]:
        """The recording as a page reads it: as the server gives a story, with the events in it."""
        return {**self.story.spelled(), "candidates": [{**self.candidate, "events": self.runs}]}


def record(story: Story, registry: ExpertRegistry, library: Library) -> Recording:
    """The story on the first of its tasks on which it holds; on the first of all if it holds on none."""
    tried: list[Recording] = []
    for candidate in story.candidates(library):
        runs = [_events({"task": candidate["task"], **asked}, registry) for asked in candidate["requests"]]
        tried.append(Recording(story, candidate, runs, _holds(story, candidate["task"], runs)))
        if tried[-1].held:
            return tried[-1]
    return tried[0]


def record_all(
    stories: Sequence[Story], registry: ExpertRegistry, library: Library, on_progress: Progress | None = None
) -> list[Recording]:
    """Every story, one after the other; `on_progress(done, total, name)` hears how far it is."""
    found = []
    for number, story in enumerate(stories):
        if on_progress is not None:
            on_progress(number, len(stories), story.title)
        found.append(record(story, registry, library))
    return found


def tasks_that_hold(
    story: Story, registry: ExpertRegistry, library: Library, on_progress: Progress | None = None
) -> list[StoryTask]:
    """Every published test on which the story holds: what to name when its own tasks no longer do.

    A story that corrects a cell is tried with the first wrong decision of its first run.
    """
    tests = [StoryTask(one["id"], number) for one in library.listing for number in range(one["published"])]
    found = []
    for done, test in enumerate(tests):
        if on_progress is not None:
            on_progress(done, len(tests), test.id)
        if any(run.corrected for run in story.runs):
            first = replace(story, tasks=(test,), runs=story.runs[:1]).candidates(library)[0]
            events = _events({"task": first["task"], **first["requests"][0]}, registry)
            test = replace(test, cell=_first_wrong(first["task"], events))
            if test.cell is None:
                continue
        if record(replace(story, tasks=(test,)), registry, library).held:
            found.append(test)
    return found


def _first_wrong(task: dict[str, Any], events: list[Event]) -> Cell | None:
    """The cell of the right grid that was decided otherwise before any other."""
    right = task["test"][0]["output"]
    for step in events[1:-1]:
        for cell in step["revealed"]:
            row, column = divmod(cell, SIDE)
            inside = row < len(right) and column < len(right[0])
            if inside and events[-1]["canvas"][cell] != right[row][column]:
                return row, column
    return None


def _events(request: dict[str, Any], registry: ExpertRegistry) -> list[Event]:
    """The events of one run, without the parts that a page does not show."""
    events: list[Event] = []
    checked = read_request(json.dumps(request).encode(), registry.names(), Limits())
    perform(prepare(checked, registry), events.append, lambda: None)
    events[-1]["trace"] = None
    return events


def _holds(story: Story, task: dict[str, Any], runs: list[list[Event]]) -> bool:
    """Whether the outcome is the one that the story is about, and inside the grid all experts had their say."""
    outcome = "".join(str(int(events[-1]["right"] is True)) for events in runs)
    return outcome == story.holds and (not story.both_decide or _all_decide(task, runs[-1]))


def _all_decide(task: dict[str, Any], events: list[Event]) -> bool:
    right = task["test"][0]["output"]
    inside = {row * SIDE + column for row in range(len(right)) for column in range(len(right[0]))}
    speakers = {
        step["routing"][step["cells"].index(cell)]
        for step in events[1:-1]
        for cell in step["revealed"]
        if cell in inside
    }
    return speakers == set(range(len(events[0]["experts"])))
