"""Stories as recordings: every run solved once, its events kept, so that a page needs no server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factordiff.web.library import Library
from factordiff.web.registry import ExpertRegistry
from factordiff.web.run import Event
from factordiff.web.stories import Cell, Picture, Story, StoryQuestion, StoryRun, StoryTask

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Recording:
    """A story on the question that was chosen for it."""

    story: Story
    candidate: dict[str, Any]  # the picture and the requests, as `Story.candidates` gives them
    runs: list[list[Event]]

    @property
    def outcome(self) -> str:
        """A digit per run: 1 where it is right."""
        return "".join(str(int(events[-1]["right"] is True)) for events in self.runs)

    @property
    def held(self) -> bool:
        """Whether the outcome is the one that the story is about, and inside the picture all experts had their say."""
        decided = not self.story.both_decide or _all_decide(self.candidate["picture"], self.runs[-1])
        return self.outcome == self.story.holds and decided

    def spelled(self) -> dict[str, Any]:
        """The recording as a page reads it: as the server gives a story, with the events in it."""
        return {**self.story.spelled(), "candidates": [{**self.candidate, "events": self.runs}]}


def record(story: Story, registry: ExpertRegistry, library: Library) -> Recording:
    """The story on the first of its questions on which it holds; on the first of all if it holds on none."""
    tried: list[Recording] = []
    for question, candidate in zip(story.tasks, story.candidates(library), strict=True):
        runs = [_events(question, run, registry, library) for run in story.runs]
        tried.append(Recording(story, candidate, runs))
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
            events = _events(test, story.runs[0], registry, library)
            test = replace(test, cell=_first_wrong(test.picture(library), events))
            if test.cell is None:
                continue
        if record(replace(story, tasks=(test,)), registry, library).held:
            found.append(test)
    return found


def _first_wrong(picture: Picture, events: list[Event]) -> Cell | None:
    """The cell of the right grid that was decided otherwise before any other."""
    right = picture["right"]
    for step in events[1:-1]:
        for cell in step["revealed"]:
            row, column = divmod(cell, picture["side"])
            inside = row < len(right) and column < len(right[0])
            if inside and events[-1]["canvas"][cell] != right[row][column]:
                return row, column
    return None


def _events(
    question: StoryQuestion, run: StoryRun, registry: ExpertRegistry, library: Library
) -> list[Event]:
    """The events of one run, without the parts that a page does not show."""
    events: list[Event] = []
    question.perform(run, registry, library, events.append, lambda: None)
    events[-1]["trace"] = None
    return events


def _all_decide(picture: Picture, events: list[Event]) -> bool:
    right, side = picture["right"], picture["side"]
    inside = {row * side + column for row in range(len(right)) for column in range(len(right[0]))}
    speakers = {
        step["routing"][step["cells"].index(cell)]
        for step in events[1:-1]
        for cell in step["revealed"]
        if cell in inside
    }
    return speakers == set(range(len(events[0]["experts"])))
