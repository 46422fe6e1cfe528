"""Stories never say what did not happen; the site that is written of them is whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from factordiff.errors import InvalidInput
from factordiff.experts import registry as experts_registry
from factordiff.web import site, story_list
from factordiff.web.library import Library
from factordiff.web.record import Recording, record, record_all, tasks_that_hold
from factordiff.web.registry import ExpertRegistry, RegisteredExpert
from factordiff.web.site import bundled, write_site
from factordiff.web.stories import Story, StoryRun, StoryTask
from factordiff.web.story_list import STORIES, stories_for, tellable
from tests.web.serving import LIBRARY
from tests.web.stubs import CELL, Knower, answers_of, copying

TASK, OTHER = "c59eb873", "2281f1f4"
SHIPPED = ["trans-full", "conv-full", "trans-color", "trans-occ"]
LARGEST = 8_000_000  # bytes of the whole site


def halves(*tasks: str) -> ExpertRegistry:
    """Two experts that each know one half of the answers to some published tasks."""
    known = answers_of([LIBRARY.task(task, "published", 0) for task in tasks])
    left = CELL % 10 < 5
    return ExpertRegistry(
        [RegisteredExpert("left", Knower(left, known)), RegisteredExpert("right", Knower(~left, known))]
    )


def story(*tasks: str, holds: str = "01") -> Story:
    runs = (
        StoryRun("One", experts=("left",), method="single", reveal="confidence:4"),
        StoryRun("Both", experts=("left", "right"), method="routing", reveal="confidence:4"),
    )
    captions = {"01": "Both know it.", "00": "Nobody does."}
    return Story(
        "halves",
        "Halves",
        "Two halves.",
        tuple(map(StoryTask, tasks)),
        runs,
        holds,
        captions,
        ((0,), (1,)),
        both_decide=True,
    )


def test_the_first_task_on_which_a_story_holds_is_taken() -> None:
    told = record(story(OTHER, TASK), halves(TASK), LIBRARY)
    assert (told.candidate["id"], told.outcome, told.held) == (TASK, "01", True)
    assert [events[-1]["event"] for events in told.runs] == ["answer", "answer"]


def test_a_story_that_holds_nowhere_is_told_as_it_came_out() -> None:
    told = record(story(OTHER), halves(TASK), LIBRARY)
    assert (told.candidate["id"], told.outcome, told.held) == (OTHER, "00", False)
    assert record(story(TASK, holds="11"), halves(TASK), LIBRARY).held is False


def test_who_decides_nothing_inside_the_grid_does_not_count_as_taking_part() -> None:
    everything = halves(TASK)
    alone = ExpertRegistry(
        [
            RegisteredExpert("left", everything["left"].expert),
            RegisteredExpert("right", Knower(CELL >= 0, answers_of([LIBRARY.task(TASK, "published", 0)]))),
        ]
    )
    sure = replace(story(TASK).runs[1], options={"temperatures": [1.0, 0.01]})
    told = record(replace(story(TASK), runs=(story(TASK).runs[0], sure)), alone, LIBRARY)
    assert told.outcome == "01"
    assert told.held is False


def test_corrected_cells_are_given_with_their_right_color() -> None:
    right = LIBRARY.task(TASK, "published", 0)["test"][0]["output"]
    told = story(TASK)
    corrected = replace(
        told,
        tasks=(StoryTask(TASK, cell=(3, 9)),),
        runs=(told.runs[0], replace(told.runs[1], corrected=True)),
    ).candidates(LIBRARY)[0]
    assert corrected["requests"][0]["given"] is None
    assert corrected["fixed"] == [None, (3, 9)]
    given = corrected["requests"][1]["given"]
    there = {(r, c): color for r, row in enumerate(given) for c, color in enumerate(row) if color is not None}
    assert there == {(3, 9): right[3][9]}


class Few(Library):
    """Two of the tasks."""

    @cached_property
    def listing(self) -> list[dict[str, Any]]:
        return [one for one in LIBRARY.listing if one["id"] in (TASK, OTHER)]


def test_the_tasks_on_which_a_story_holds_can_be_found() -> None:
    heard: list[tuple[int, int, str]] = []
    found = tasks_that_hold(story(), halves(TASK), Few(), lambda *progress: heard.append(progress))
    assert found == [StoryTask(TASK)]
    assert sorted(task for _, _, task in heard) == sorted([TASK, OTHER])
    assert {total for _, total, _ in heard} == {2}


def test_a_correction_is_tried_with_the_first_wrong_decision() -> None:
    """The one who knows the left half is surest of its first cell, and wrong first in the column beside its half."""
    told = story(holds="00")
    runs = (told.runs[0], replace(told.runs[0], corrected=True))
    found = tasks_that_hold(replace(told, runs=runs, both_decide=False), halves(TASK), Few(), None)
    assert [one.id for one in found if one.id == TASK] == [TASK]
    right = LIBRARY.task(TASK, "published", 0)["test"][0]["output"]
    cell = next(one.cell for one in found if one.id == TASK)
    assert cell is not None
    assert cell[1] >= 5
    assert cell[0] < len(right)


@pytest.mark.parametrize("one", STORIES, ids=lambda one: one.name)
def test_every_story_is_well_formed(one: Story) -> None:
    assert sorted(place for act in one.acts for place in act) == list(range(len(one.runs)))
    assert len(one.holds) == len(one.runs)
    assert one.holds in one.captions
    begun = {one.holds[: sum(len(act) for act in one.acts[: number + 1])] for number in range(len(one.acts))}
    assert begun <= one.captions.keys()
    for candidate in one.candidates(LIBRARY):
        assert len(candidate["requests"]) == len(one.runs)
        assert all(request["experts"] for request in candidate["requests"])
        right = candidate["picture"]["right"]
        assert candidate["picture"]["kind"] == one.kind
        for run, cell in zip(one.runs, candidate["fixed"], strict=True):
            assert (cell is not None) == run.corrected
            assert cell is None or (cell[0] < len(right) and cell[1] < len(right[0]))


def test_names_are_told_apart_and_there_are_a_dozen() -> None:
    assert len({one.name for one in STORIES}) == len(STORIES) >= 12


def test_experts_that_are_not_here_tell_no_story() -> None:
    assert tellable(copying()) == []  # nor those of worlds, which bring their own experts, alone
    assert stories_for(copying(), LIBRARY) == []


def test_stories_of_worlds_are_told_where_their_experts_are(
    shipped: ExpertRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert [one.kind for one in tellable(shipped) if one.kind != "grid"] == ["mosaic", "text"]
    monkeypatch.setattr(experts_registry, "SHIPPED", tmp_path)
    monkeypatch.setattr(story_list, "STORIES", (story(TASK), *story_list.STORIES))
    assert [one.name for one in tellable(halves(TASK))] == ["halves"]


def test_a_fitted_number_belongs_to_its_method_alone() -> None:
    assert "temperatures" in StoryRun("", team="col+occ").settings()
    assert "temperatures" not in StoryRun("", team="col+occ", method="product").settings()


@pytest.fixture(scope="module")
def shipped() -> ExpertRegistry:
    return ExpertRegistry.load(SHIPPED)


def test_the_first_story_shows_what_it_claims(shipped: ExpertRegistry) -> None:
    """Each specialist fails, together they are right, and inside the grid both decide."""
    assert record(STORIES[0], shipped, LIBRARY).held


@pytest.mark.slow
def test_every_story_shows_what_it_claims_and_all_fit_on_a_page(
    shipped: ExpertRegistry, tmp_path: Path
) -> None:
    told = record_all(STORIES, shipped, LIBRARY)
    assert [one.story.name for one in told if not one.held] == []
    write_site(tmp_path / "site", told, 120)
    assert sum(path.stat().st_size for path in (tmp_path / "site").iterdir()) < LARGEST


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record(story(TASK), halves(TASK), LIBRARY)


def test_the_site_is_whole_and_asks_nobody(recording: Recording, tmp_path: Path) -> None:
    page = write_site(tmp_path / "new" / "site", [recording], 120)
    assert {path.name for path in page.parent.iterdir()} == {
        "index.html", "page.js", "stories.js", "page.css", "grids.css", "story.css", "icon.svg",
    }  # fmt: skip
    assert 'type="module"' not in page.read_text()
    for path in page.parent.glob("*.js"):
        assert "://" not in path.read_text().replace("http://www.w3.org/2000/svg", "")


def test_a_folder_with_something_in_it_is_left_alone(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(InvalidInput, match="not empty; name a new folder"):
        write_site(tmp_path, [recording], 120)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_modules_become_one_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "js").mkdir()
    monkeypatch.setattr(site, "STATIC", tmp_path)
    (tmp_path / "js" / "a.js").write_text(
        'import { f as g } from "./b.js";\nimport * as c from "./c.js";\ng(c.x);\n'
    )
    (tmp_path / "js" / "b.js").write_text('import { x } from "./c.js";\nexport function f() { return x; }\n')
    (tmp_path / "js" / "c.js").write_text("export const x = 1;\n")
    script = bundled("a")
    assert script.index("modules.c =") < script.index("modules.b =") < script.index("modules.a =")
    assert "const { f: g } = modules.b;" in script
    assert "const c = modules.c;" in script
    assert "return { f };" in script
    (tmp_path / "js" / "c.js").write_text('import { f } from "./b.js";\n')
    with pytest.raises(InvalidInput, match="import each other"):
        bundled("a")
    (tmp_path / "js" / "c.js").write_text("export default 1;\n")
    with pytest.raises(InvalidInput, match="a classic script cannot hold: export default"):
        bundled("a")
