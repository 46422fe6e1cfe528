"""Tasks in, answers out: both attempts, given cells, refusals that name the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from factordiff import TabularExpert, compose, solve
from factordiff.arc.published import published_task
from factordiff.arc.task import Pair, Task, spell_task
from factordiff.composition.factor_names import partition
from factordiff.errors import DataError, InvalidInput
from factordiff.sampling.reveal import ByConfidence
from factordiff.solving.solver import check_task, condition_of, starting_canvas
from tests.solving_experts import Rule, further, grid, halves, plus_one, task, tiny_experts
from tests.task_files import write_challenges, write_task


def everywhere(place: torch.Tensor) -> torch.Tensor:
    return torch.ones(100, dtype=torch.bool)


def test_two_experts_that_each_know_half_solve_the_task() -> None:
    answers = solve(task(), compose(halves()))
    assert len(answers) == 2
    assert answers[0].right is True
    assert answers[0].grid.tolist() == further(task().tests[0].input).tolist()
    assert answers[1].right is None
    assert answers[1].grid.tolist() == [[8, 9]]
    assert answers.right is None
    assert not any(np.array_equal(one.grid, answers[0].grid) for one in answers[0].alone)


def test_experts_of_other_values_are_refused() -> None:
    coin = TabularExpert(torch.tensor([0.5, 0.5]))
    with pytest.raises(
        InvalidInput, match=r"^experts: heads, tails know 2 values, the grids of ARC have 10; ask"
    ):
        solve(task(), {"heads": coin, "tails": coin})


def test_one_expert_alone_is_its_own_answer() -> None:
    expert = Rule(plus_one, everywhere)
    answers = solve(task(), compose([expert], reveal=ByConfidence(4)), attempts=1)
    assert answers[0].right
    assert expert.passes == 8
    (alone,) = answers[0].alone
    assert alone.grid is answers[0].grid
    assert expert.passes == 8


def test_a_published_task_is_solved_by_its_id() -> None:
    by_id = solve("0ca9ddb6", compose(halves()), attempts=1)
    assert by_id.task == "0ca9ddb6"
    assert (
        by_id[0].grid.tolist()
        == solve(published_task("0ca9ddb6"), compose(halves()), attempts=1)[0].grid.tolist()
    )
    with pytest.raises(
        DataError, match="0ca9ddb7: no file has this name, and it is not one of the 178 published"
    ):
        solve("0ca9ddb7", halves())


def test_given_cells_are_kept_and_decided_by_nobody() -> None:
    answer = solve(task(), compose(halves()), given={(0, 0): 6, (1, 3): 1})[0]
    assert answer.grid[0, 0] == 6
    assert answer.grid[1, 3] == 1
    assert answer.routing is not None
    assert answer.routing.labels.tolist() == [[-1, 0, 1, 1], [0, 0, 1, -1]]


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({(0, 10): 1}, r"given: cell \(0, 10\) lies outside"),
        ({(-1, 0): 1}, r"given: cell \(-1, 0\) lies outside"),
        ({(0, 0): 10}, r"given: cell \(0, 0\): expected a color 0..9, got 10"),
        ({(0, 0): -1}, r"expected a color"),
        ({(0, 0): 2.5}, r"given: cell \(0, 0\): expected a color 0..9, got 2.5"),
        ({(0, 0): "2"}, r"expected a color 0..9, got '2'"),
        ({(0.5, 0): 2}, r"given: expected cells as \(row, column\), got \(0.5, 0\)"),
        ({7: 2}, r"given: expected cells as \(row, column\), got 7"),
        ([[1, 2]], r"given: expected a mapping from \(row, column\) to color, got list"),
    ],
)
def test_given_cells_must_be_cells_and_colors(given: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        starting_canvas(given)


def test_a_test_is_answered_the_same_alone_and_after_others() -> None:
    both = solve(task(), compose(halves(), "fkc", particles=2, reveal=ByConfidence(4)), seed=3)
    again = solve(task(), compose(halves(), "fkc", particles=2, reveal=ByConfidence(4)), seed=3)
    assert both[1].canvas.tolist() == again[1].canvas.tolist()
    other = solve(task(), compose(halves(), "fkc", particles=2, reveal=ByConfidence(4)), seed=4)
    assert both[1].canvas.tolist() != other[1].canvas.tolist()


@pytest.mark.parametrize("factors", ["pixel", "row", "column", "block:2x2", "component", "whole"])
def test_a_factor_speaks_with_one_voice_at_every_step(factors: str) -> None:
    answer = solve(task(), compose(halves(), factors=factors, reveal=ByConfidence(5)))[0]
    labels = partition(factors, 100, (10, 10), condition_of(task(), 0).query)
    of_cell = torch.arange(100) if labels is None else torch.as_tensor(labels).reshape(-1)
    assert answer.trace is not None
    for step in answer.trace.steps:
        assert step.routing is not None
        spoken = torch.tensor(step.routing[0][0])
        for factor in of_cell[spoken >= 0].unique():
            assert len(spoken[(of_cell == factor) & (spoken >= 0)].unique()) == 1
    if factors in ("pixel", "column", "block:2x2"):  # the experts divide the columns: 0, 1 and the rest
        assert answer.right


def test_components_are_those_of_the_query() -> None:
    """A piece that reaches one cell into the other's half is at first spoken for by its majority."""
    pair = Pair(grid([[3, 3, 3, 0]]), grid([[4, 4, 4, 0]]))
    answer = solve(
        Task("3", (pair,), (pair,)), compose(halves(), factors="component", reveal=ByConfidence(1))
    )[0]
    assert answer.canvas[:4].tolist() == [4, 4, 5, 0]


def test_networks_answer_too(tmp_path: Path) -> None:
    answers = solve(task(), compose(tiny_experts(tmp_path), reveal=ByConfidence(4)))
    assert [answer.grid.shape for answer in answers] == [(2, 4), (1, 2)]
    assert answers[0].team.names == ("trans-full", "conv-full")


@pytest.mark.parametrize("count", [1, 10])
def test_one_to_ten_demonstrations_fit(count: int, tmp_path: Path) -> None:
    many = Task("many", task().demonstrations[:1] * count, task().tests)
    assert condition_of(many, 0).present.shape == (1, count)
    assert len(solve(many, compose(tiny_experts(tmp_path), reveal=ByConfidence(2)))) == 2


def test_too_many_demonstrations_are_refused() -> None:
    for count in (0, 11):
        with pytest.raises(
            InvalidInput, match=f"task many, train: expected 1 to 10 demonstrations, got {count}"
        ):
            check_task(Task("many", task().demonstrations[:1] * count, task().tests))


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("train input", "task big, train pair 1, input: 1x11 cells, expected at most 10x10"),
        ("train output", "task big, train pair 1, output: 1x11"),
        ("test input", "task big, test pair 1, input: 1x11"),
        ("test output", "task big, test pair 1, output: 1x11"),
    ],
)
def test_large_grids_are_refused_by_place(where: str, sentence: str) -> None:
    small, large = grid([[1]]), grid([[0] * 11])
    pair = Pair(large, small) if where.endswith("input") else Pair(small, large)
    fine = Pair(small, small)
    big = (
        Task("big", (fine, pair), (fine,))
        if where.startswith("train")
        else Task("big", (fine,), (fine, pair))
    )
    with pytest.raises(InvalidInput, match=sentence):
        solve(big, compose(halves()))


def test_three_lines_to_an_answer(tmp_path: Path) -> None:
    write_task(task(), tmp_path / "plus.json")
    from_file = solve(tmp_path / "plus.json", halves())
    from_values = solve(spell_task(task()), halves())
    from_task = solve(task(), halves())
    assert from_file.task == "plus"
    assert from_file.right is None
    team = compose(halves())
    by_team = solve(tmp_path / "plus.json", team), solve(spell_task(task()), team)
    for answers in (from_file, from_values, from_task, *by_team):
        assert answers[0].right


@pytest.mark.usefixtures("untyped")
def test_what_is_no_task_is_said_to_be_none() -> None:
    with pytest.raises(InvalidInput, match=r"task: expected a Task, .* got int"):
        solve(3, halves())  # type: ignore[arg-type]


def test_a_file_of_several_tasks_is_not_one_task(tmp_path: Path) -> None:
    write_challenges([task("one"), task("two")], tmp_path / "two.json")
    with pytest.raises(DataError, match=r"two\.json: has 2 tasks; solve takes one"):
        solve(tmp_path / "two.json", halves())


def test_a_step_can_be_heard_and_a_listener_can_stop_it() -> None:
    heard: list[tuple[int, int]] = []
    solve(
        task(),
        compose(halves(), reveal=ByConfidence(4)),
        on_step=lambda done, total: heard.append((done, total)),
    )
    assert heard[:4] == [(25, 100), (50, 100), (75, 100), (100, 100)]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(task(), compose(halves()), on_step=stop)


@pytest.mark.parametrize(("option", "value"), [("method", "mixture"), ("temperatures", [1.0, 0.5])])
def test_a_team_keeps_its_method_and_numbers(option, value) -> None:
    with pytest.raises(InvalidInput, match=f"{option}: a team has its method and numbers already"):
        solve(task(), compose(halves()), **{option: value})
