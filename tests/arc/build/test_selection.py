from __future__ import annotations

from pathlib import Path

import pytest

from factordiff.arc.artefact import Artefact
from factordiff.arc.build import selection
from factordiff.arc.build.candidates import collect, rule
from factordiff.arc.build.official import fitting_tasks


def test_the_committed_list_follows_from_the_committed_measurements(shipped: Artefact) -> None:
    content = selection.measurements()
    assert sorted(content["measured"]) == sorted(fitting_tasks())
    assert content["selected"] == selection.select(content["measured"])
    assert len(content["selected"]) == 120
    assert shipped.tasks == content["selected"] == selection.selected_tasks()
    stated = {"seed": 0, "candidates": 1_500, "attempt_budget": 20_000, "tasks": 120}
    assert content["rule"] == {**rule(), **stated}


def test_the_measurements_add_up() -> None:
    for figures in selection.measurements()["measured"].values():
        assert figures["attempts"] == figures["candidates"] + sum(figures["refused"].values())
        assert figures["candidates"] == 1_500 or figures["attempts"] == 20_000


def test_measuring_a_task_again_gives_the_same_figures(tmp_path: Path) -> None:
    task = "8403a5d5"
    again = collect(task, 0, selection.CANDIDATES, selection.ATTEMPT_BUDGET, tmp_path / "task.json")
    assert again.measurement() == selection.measurements()["measured"][task]


@pytest.mark.slow
def test_measuring_everything_again_gives_the_same_selection(tmp_path: Path) -> None:
    assert selection.measure(tmp_path, workers=2) == selection.measurements()


def test_the_rule_takes_the_cheapest_that_have_enough() -> None:
    def figures(attempts: int, candidates: int = 1_500) -> dict[str, object]:
        return {"attempts": attempts, "candidates": candidates, "refused": {"size": 9, "orbit": 1}}

    measured = {"d": figures(7), "c": figures(7), "b": figures(9), "a": figures(5, 1_499), "e": figures(3)}
    assert selection.select(measured, count=2) == ["c", "e"], "ties go by id"
    assert selection.select(measured) == ["b", "c", "d", "e"], "too few candidates is out"


def reason_left_out(figures: Mapping[str, Any]) -> str:
    """Why a task with these measurements is not among the 120."""
    if figures["candidates"] >= selection.CANDIDATES:
        tried = f"{figures['attempts']:,} attempts for {selection.CANDIDATES:,} candidates"
        return f"{tried}: {selection.TASKS} others needed fewer"
    refused = figures["refused"]
    cause = {
        "size": "its grids are mostly larger than 10x10",
        "orbit": "it repeats itself (up to symmetry)",
    }.get(max(refused, key=refused.get), "its generator mostly fails")
    return f"{figures['candidates']:,} candidates in {figures['attempts']:,} attempts: {cause}"


def test_every_task_left_out_has_its_reason() -> None:
    content = selection.measurements()
    reasons = {
        task: reason_left_out(figures)
        for task, figures in content["measured"].items()
        if task not in content["selected"]
    }
    assert len(reasons) == 58
    documented = Path("docs/data.md").read_text()
    assert all(f"| {task} | {reason} |" in documented for task, reason in reasons.items())
    assert "repeats itself" in reasons["007bbfb7"]
    assert "larger than 10x10" in reasons["a3325580"]
    assert "120 others needed fewer" in reasons["239be575"]
