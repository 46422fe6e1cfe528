"""What an answer tells: its path, who decided, why, and how it looks."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from factordiff import ByConfidence, compose
from factordiff.arc import drawing, svg
from factordiff.errors import FileError, InvalidInput
from factordiff.networks.named import NamedExpert
from factordiff.sampling.path import decided_by, path_steps
from factordiff.solving.answer import Answer, Refusal
from factordiff.solving.explanation import differs
from factordiff.solving.pictures import animation, picture, save_animation, save_picture
from factordiff.solving.solver import solve
from tests.solving_experts import Rule, grid, halves, plus_one, task


@pytest.fixture(scope="module")
def answer() -> Answer:
    return solve(task(), compose(halves(), reveal=ByConfidence(20)))[0]


def test_every_cell_is_decided_once_and_by_the_surer_expert(answer: Answer) -> None:
    labels = decided_by(answer.samples)
    assert labels is not None
    assert labels == [0 if cell % 10 < 2 else 1 for cell in range(100)]
    revealed = [cell for path_step in path_steps(answer.samples) for cell in path_step.revealed]
    assert sorted(revealed) == list(range(100))


def test_an_explanation_says_who_and_what_the_others_said(answer: Answer) -> None:
    explanation = answer.explain()
    assert len(explanation) == 8  # the cells of the 2x4 grid, not the padding
    decision = explanation.at(0, 2)
    assert (decision.color, decision.decided_by, decision.disputed) == (4, "right", True)
    left, right = decision.opinions
    assert (left.color, right.color) == (5, 4)
    assert right.margin == pytest.approx(0.98 - 0.02 / 9, abs=1e-6)
    assert left.margin == pytest.approx(0.4 - 0.6 / 9, abs=1e-6)
    assert left.chance_of_answer == pytest.approx(0.6 / 9, abs=1e-6)
    assert "(0, 2) = 4 by right: left said 5 (0.40, margin 0.333)" in repr(decision)
    assert right.decisive_log_doubt == pytest.approx(np.log(0.02 + 0.02 / 9), abs=1e-5)
    assert right.decisive_log_doubt < left.decisive_log_doubt
    assert (left.temperature, right.temperature) == explanation.temperatures == (1.0, 1.0)
    assert len(explanation.disputed()) == 7  # at (1, 0) the right color is 5, the habit of the other
    assert [one.step for one in explanation] == sorted(one.step for one in explanation)
    json.dumps(explanation.spelled(), allow_nan=False)
    with pytest.raises(InvalidInput, match=r"\(5, 5\) was not decided"):
        explanation.at(5, 5)


def test_sure_experts_are_told_apart_by_what_is_missing_to_one() -> None:
    """Margins of 1 - 2e-6 and 1 - 2e-9 are both 1.000; what routing compares is not."""

    class Sure(Rule):
        def __init__(self, doubt: float) -> None:
            super().__init__(plus_one, lambda place: place[0] >= 0)
            self.doubt = doubt

        def log_probs(self, x_t: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
            said = torch.full((*x_t.shape, 10), self.doubt / 9, dtype=torch.float64)
            return said.scatter(-1, self.rule(encoded)[..., None], 1.0 - self.doubt).log()

    team = compose({"sure": Sure(1e-6), "surer": Sure(1e-9)}, temperatures={"sure": 0.25})
    decision = solve(task(), team, attempts=1)[0].explain().at(0, 0)
    sure, surer = decision.opinions
    assert (sure.margin_text, surer.margin_text) == ("1 - 1.1e-06", "1 - 1.1e-09")
    assert decision.decided_by == "sure"  # its temperature makes it the surer one
    assert sure.decisive_log_doubt < surer.decisive_log_doubt
    assert surer.decisive_log_doubt == pytest.approx(np.log(10 / 9 * 1e-9), abs=1e-3)
    assert (sure.temperature, surer.temperature) == (0.25, 1.0)


def test_a_flat_expert_has_no_margin_and_disputes_nothing() -> None:
    class Flat(Rule):
        def log_probs(self, x_t: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
            return torch.full((*x_t.shape, 10), 0.1).log()

    team = compose({"know": Rule(plus_one, lambda place: place[0] >= 0), "flat": Flat(plus_one, plus_one)})
    explanation = solve(task(), team, attempts=1)[0].explain()
    flat = explanation.at(0, 0).opinions[1]
    assert flat.margin_text == "0.000"  # and not -0.000
    assert np.copysign(1.0, flat.margin) == 1.0
    assert not explanation.disputed()


def test_a_specialist_disputes_only_what_it_was_trained_to_know() -> None:
    chances = torch.tensor([0.1, 0.0, 0.0, 0.5, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0])
    occupancy, color, full = (
        NamedExpert("one", Rule(plus_one, plus_one), objective)
        for objective in ("occupancy", "color", "full")
    )
    assert [differs(full, chances, answer) for answer in (0, 3, 4)] == [True, False, True]
    assert [differs(occupancy, chances, answer) for answer in (0, 3, 4)] == [True, False, False]
    assert [differs(color, chances, answer) for answer in (0, 3, 4)] == [False, False, True]


def test_the_decisive_log_doubt_is_that_of_the_factor() -> None:
    answer = solve(task(), compose(halves(), factors="row", reveal=ByConfidence(2)), attempts=1)[0]
    for decision in answer.explain():
        least = min(decision.opinions, key=lambda one: one.decisive_log_doubt)
        assert decision.decided_by == least.expert


def test_methods_that_do_not_route_explain_what_each_said() -> None:
    answer = solve(task(), compose(halves(), "mixture", reveal=ByConfidence(5)))[0]
    assert answer.routing is None
    decision = answer.explain().at(0, 0)
    assert decision.decided_by is None
    assert "by all" in repr(decision)


def test_a_vote_has_no_single_path() -> None:
    answer = solve(task(), compose(halves(), "vote", runs=1, reveal=ByConfidence(2)))[0]
    assert answer.trace is None
    assert answer.routing is None
    with pytest.raises(InvalidInput, match="pooled from several runs"):
        answer.explain()
    with pytest.raises(InvalidInput, match="no single path"):
        animation(answer)


def test_the_path_of_a_particle_is_followed_back_through_resamplings() -> None:
    """Every path_step only adds to the one before, which a wrong ancestor would not."""
    for seed in range(3):
        answer = solve(task(), compose(halves(), "rne", particles=6, reveal=ByConfidence(10)), seed=seed)[0]
        assert answer.trace is not None
        assert any(step.ancestors != [list(range(6))] for step in answer.trace.steps)
        told = path_steps(answer.samples)
        known = torch.tensor(told[0].before)
        for path_step in told:
            assert path_step.before == known.tolist()
            after = torch.tensor(path_step.after)
            assert (after[known != 10] == known[known != 10]).all()
            known = after
        assert known.tolist() == answer.samples.x_0[0].tolist()


def test_an_answer_with_nothing_left_to_decide() -> None:
    everything = {(row, column): 1 for row in range(10) for column in range(10)}
    answer = solve(task(), compose(halves()), given=everything)[0]
    assert answer.routing is None
    with pytest.raises(InvalidInput, match="nothing was left to decide"):
        answer.explain()


def test_everything_has_a_useful_repr(answer: Answer) -> None:
    assert repr(answer).startswith("Answer(task plus, test 0: 2x4 and 2x4, right; 242 passes)")
    assert repr(answer.second).startswith(
        "SecondAttempt(2x4, with its second choice at row 0, column 0, where"
    )
    assert repr(answer.question) == "Question(task plus, test 0, seed 0)"
    assert repr(answer.routing) == "RoutingMap(2x4; left: 4, right: 4)"
    assert repr(answer.alone[0]) == "Alone(left, 10x10, 20 passes)"
    assert repr(answer.team) == "Team(left (full) + right (full); routing; reveal ByConfidence(steps=20))"
    assert repr(answer.explain()) == "Explanation(8 cells, 7 of them disputed)"
    assert repr(Refusal("x", "too large")) == "Refusal(x: too large)"
    assert repr(task()) == "Task(plus: 2 demonstrations, 2 tests)"
    assert [repr(pair) for pair in task().tests] == ["Pair(2x4 -> 2x4)", "Pair(1x2 -> ?)"]
    assert "TaskAnswers(plus: Answer(" in repr(solve(task(), compose(halves())))


def test_experts_alone_are_asked_when_somebody_looks() -> None:
    experts = halves()
    (answer, _) = solve(task(), compose(experts, reveal=ByConfidence(4)), attempts=1)
    before = experts["left"].passes
    assert [one.name for one in answer.alone] == ["left", "right"]
    assert [one.executed_passes for one in answer.alone] == [4, 4]
    assert answer.alone is answer.alone
    assert experts["left"].passes == before + 4


def rectangles(text: str) -> list[str | None]:
    return [part.get("fill") for part in ElementTree.fromstring(text).iter() if part.tag.endswith("rect")]


def test_a_grid_as_svg_shows_every_cell_in_its_color() -> None:
    drawn = svg.grid_svg(grid([[0, 3], [9, 1]]))
    assert rectangles(drawn)[:4] == ["#000000", "#2ecc40", "#870c25", "#0074d9"]
    assert drawn._repr_svg_() == drawn


def test_wrong_cells_are_crossed_out() -> None:
    plain, marked = grid([[0, 3], [9, 1]]), np.array([[False, True], [False, True]])
    crosses = ElementTree.fromstring(svg.grid_svg(plain, 16, marked)).findall(".//{*}path")
    assert [part.get("d") for part in crosses] == [crosses[0].get("d")] * 2  # an edge and the cross on it
    assert str(crosses[0].get("d")).count("M") == 2
    assert "M19 3" in str(crosses[0].get("d"))


def test_the_colors_are_those_of_the_pictures() -> None:
    assert tuple("#{:02x}{:02x}{:02x}".format(*color) for color in drawing.PALETTE) == svg.COLORS


def test_a_routing_map_as_svg_names_the_experts(answer: Answer) -> None:
    assert answer.routing is not None
    drawn = answer.routing._repr_svg_()
    fills = rectangles(drawn)
    assert fills[:8] == [*[svg.expert_color(0)] * 2, *[svg.expert_color(1)] * 2] * 2
    assert "left: 4" in drawn
    unusual = svg.routing_svg(np.array([[-1, 0]]), ["<b>&"])
    assert rectangles(unusual)[:2] == [svg.HIDDEN, svg.expert_color(0)]
    assert "<b>&" not in unusual  # names are text, not markup


def test_notebooks_get_pictures(answer: Answer) -> None:
    drawn = answer._repr_svg_()
    assert ElementTree.fromstring(drawn) is not None
    for title in ("input", "attempt 1", "attempt 2", "truth", "decided by"):
        assert f">{title}<" in drawn
    assert animation(answer)._repr_png_().startswith(b"\x89PNG")
    both = solve(task(), compose(halves()), attempts=1)._repr_svg_()
    assert ElementTree.fromstring(both) is not None
    assert both.count(">attempt 1<") == 2
    assert ElementTree.fromstring(task()._repr_svg_()) is not None
    assert ElementTree.fromstring(answer.alone[0]._repr_svg_()) is not None


def test_a_picture_and_an_animation(answer: Answer, tmp_path: Path) -> None:
    save_picture(picture([answer, answer]), tmp_path / "deep" / "answer.png")
    one = picture([answer])
    with Image.open(tmp_path / "deep" / "answer.png") as drawn:
        assert drawn.height == 2 * one.height
    frames = animation(answer)
    assert len(frames) == 21
    save_animation(frames, tmp_path / "answer.gif")
    assert {frame.width >= 600 for frame in animation(answer, 600)} == {True}
    assert {frame.width < 300 for frame in frames} == {True}
    with Image.open(tmp_path / "answer.gif") as moving:
        assert moving.n_frames > 5  # frames in which only padding was revealed look alike and are merged
        assert moving.info["loop"] == 0
    assert not list(tmp_path.rglob(".*"))


def test_pictures_that_cannot_be_drawn_or_written_are_refused(answer: Answer, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="picture: expected at least one answer"):
        picture([])
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        save_picture(picture([answer]), tmp_path / "file" / "answer.png")
