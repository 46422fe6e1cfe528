"""The stories that are told, the first one on the first screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factordiff.errors import FactorDiffError
from factordiff.web.library import Library
from factordiff.web.registry import ExpertRegistry
from factordiff.web.stories import WATCHABLE, Cell, Story, StoryRun, StoryTask
from factordiff.web.world_story_list import MOSAIC, TEXT

COLORS, PLACES = "trans-color", "trans-occ"
A_ALONE = StoryRun("A alone", experts=(COLORS,), method="single")
B_ALONE = StoryRun("B alone", experts=(PLACES,), method="single")
TOGETHER = StoryRun("Together", team="col+occ")
ALONE_THEN_TOGETHER = ((0, 1), (2,))
SPECIALISTS = {
    "00": "Alone, each fails. Of A’s {wrong 0} wrong cells, {empty 0} should be empty. "
    "Of B’s {wrong 1}, {colored 1} have the wrong color.",
    "001": "Together they are right. Each cell went to the one who is sure of it.",
    "000": "Together they are not right either: here, being sure is not the same as being right.",
    "01": "B is right alone, so there is little left for A to add.",
    "10": "A is right alone, so there is little left for B to add.",
}


def _generalists(reveal: str) -> tuple[StoryRun, ...]:
    """Two models that know the whole task, alone and together."""
    return (
        StoryRun("trans-full alone", experts=("trans-full",), method="single", reveal=reveal),
        StoryRun("conv-full alone", experts=("conv-full",), method="single", reveal=reveal),
        StoryRun("Together", team="full+full", reveal=reveal),
    )


def _published(tasks: tuple[str, ...]) -> tuple[StoryTask, ...]:
    return tuple(map(StoryTask, tasks))


def _two(name: str, title: str, intro: str, *tasks: str) -> Story:
    """The two specialists, alone and then together."""
    runs = (A_ALONE, B_ALONE, TOGETHER)
    return Story(
        name, title, intro, _published(tasks), runs, "001", SPECIALISTS, ALONE_THEN_TOGETHER, both_decide=True
    )


def _change(name: str, title: str, intro: str, team: str, cells: Mapping[str, Cell]) -> Story:
    """A wrong answer, one corrected cell, and the rest recomputed; `cells` are by task."""
    return Story(
        name,
        title,
        intro,
        tuple(StoryTask(task, cell=cell) for task, cell in cells.items()),
        (StoryRun("Before", team=team), StoryRun("One cell corrected", team=team, corrected=True)),
        "01",
        {
            "0": "Not right. Now one wrong cell is corrected (ringed), and nothing else.",
            "01": "One corrected cell, and all others that were wrong changed with it: now the answer is right.",
            "00": "One corrected cell is not enough here: the answer is still not right.",
            "1": "Right at once: there was nothing to correct.",
        },
        ((0,), (1,)),
    )


def _against(
    name: str, title: str, intro: str, runs: tuple[StoryRun, ...], holds: str, says: str, *tasks: str
) -> Story:
    """Two ways side by side."""
    captions = {
        "11": "Both are right.",
        "00": "Neither is right.",
        "10": f"“{runs[0].label}” is right, “{runs[1].label}” is not.",
        "01": f"“{runs[1].label}” is right, “{runs[0].label}” is not.",
        holds: says,
    }
    return Story(name, title, intro, _published(tasks), runs, holds, captions, ((0, 1),))


STORIES = (
    _two(
        "together",
        "A knows colors. B knows places.",
        "Two small models fill in the same grid, each on its own.",
        "c59eb873", "2281f1f4", "d364b489", "2204b7a8",
    ),
    _two(
        "flowers",
        "Petals of the right color in the right place",
        "Around each point a pattern is to be drawn, and its color depends on the point.",
        "0ca9ddb6", "dc1df850", "ea32f347",
    ),
    _two(
        "columns",
        "Where it goes, and what it is",
        "B finds the columns that have to be filled. What they are filled with is A’s to say.",
        "2281f1f4", "8d510a79", "a699fb00",
    ),
    MOSAIC,
    TEXT,
    _change(
        "change-its-mind",
        "Change its mind",
        "First the answer as it comes. Then one cell is corrected, and the rest is drawn anew.",
        "full+full",
        {"e48d4e1a": (5, 0), "2281f1f4": (5, 0), "05269061": (1, 1)},
    ),
    _change(
        "one-cell",
        "One cell decides the pattern",
        "Two specialists draw a pattern. Then one cell of it is corrected, and the rest is drawn anew.",
        "col+occ",
        {"05269061": (1, 1), "22eb0ac0": (9, 3)},
    ),
    _against(
        "routing-or-product",
        "Routing against the product",
        "The same two specialists. Routing asks who is surest of a cell; the product multiplies what both say.",
        (TOGETHER, StoryRun("Product", team="col+occ", method="product")),
        "10",
        "Routing is right. In the product each expert also votes on what it never learned, and spoils it.",
        "2204b7a8", "d364b489",
    ),
    _against(
        "product-wins",
        "Where the product is better",
        "Two models that both know the whole task. Routing follows the surest one; the product asks both.",
        (
            StoryRun("Routing", team="full+full", reveal="fast"),
            StoryRun("Product", team="full+full", method="product", reveal="fast"),
        ),
        "01",
        "The surest model is wrong here. Where both know the whole task, multiplying can be the better way.",
        "44f52bb0", "a3df8b1e",
    ),
    _against(
        "how-sure-is-sure",
        "How sure is sure?",
        "Two models do not mean the same by “sure”. A number for each, fitted on other tasks, makes them comparable.",
        (
            StoryRun("As they are", team="col+occ", options={"temperatures": [1.0, 1.0]}),
            StoryRun("With the fitted number", team="col+occ"),
        ),
        "01",
        "The same two models, the same rule: only with the fitted number does each cell find the one who knows it.",
        "0520fde7", "1bfc4729", "1f0c79e5",
    ),
    Story(
        "one-errs",
        "One errs, the other does not",
        "Two models that both know the whole task, with different networks inside.",
        _published(("22eb0ac0", "1e0a9b12")),
        _generalists("fast"),
        "011",
        {
            "01": "The first one errs.",
            "10": "The second one errs.",
            "011": "Together they are right: where the first one erred, it was less sure than the second.",
            "101": "Together they are right: where the second one erred, it was less sure than the first.",
            "010": "Together they are not right: the one who erred was the surer one.",
            "100": "Together they are not right: the one who erred was the surer one.",
            "11": "Each is right alone.",
        },
        ALONE_THEN_TOGETHER,
    ),
    Story(
        "an-honest-failure",
        "An honest failure",
        "What nobody knows, nobody can put together.",
        _published(("0d3d703e", "23581191", "1caeab9d")),
        _generalists(WATCHABLE),
        "000",
        {
            "00": "Neither knows this.",
            "000": "Neither knows it, and together they do not either. Composing adds no knowledge.",
            "001": "Neither knows it alone, and yet together they are right.",
        },
        ALONE_THEN_TOGETHER,
    ),
    _against(
        "the-average",
        "Why not just take the average?",
        "The mixture averages what the two specialists say; routing listens to one of them at each cell.",
        (TOGETHER, StoryRun("Mixture", team="col+occ", method="mixture")),
        "10",
        "The average hears the one who does not know as loudly as the one who does. Routing does not.",
        "0520fde7", "22eb0ac0", "25d8a9c8",
    ),
    _against(
        "fast-or-exact",
        "Many cells at once, or one by one",
        "The same team. One reveals a cell at a time; the other all cells of which it is sure at once.",
        (
            StoryRun("One by one", team="col+occ", reveal="exact"),
            StoryRun("Fast", team="col+occ", reveal="fast"),
        ),
        "11",
        "The same answer: {passes 1} passes through the networks instead of {passes 0}.",
        "2204b7a8", "3aa6fb7a",
    ),
)  # fmt: skip


def tellable(registry: ExpertRegistry) -> list[Story]:
    """The stories whose experts are all here; those of worlds, which bring their own, are told beside others only."""

    def told(story: Story) -> bool:
        try:
            experts = {name for run in story.runs for name in run.settings()["experts"]}
        except FactorDiffError:  # a team whose experts are not here, or others by now
            return False
        return story.tasks[0].tellable(sorted(experts), registry)

    found = [story for story in STORIES if told(story)]
    return found if any(story.kind == StoryTask.kind for story in found) else []


def stories_for(registry: ExpertRegistry, library: Library) -> list[dict[str, Any]]:
    """The stories that these experts can tell, with their tasks and requests."""
    return [{**story.spelled(), "candidates": story.candidates(library)} for story in tellable(registry)]
