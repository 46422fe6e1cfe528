"""What the page shows is what happened: the observer against the loop's own trace."""

from __future__ import annotations

import itertools
import json

import pytest

from factordiff.sampling.trace import Trace
from factordiff.web.limits import Limits
from factordiff.web.request import read_request
from factordiff.web.run import perform, prepare
from tests.web.stubs import copying, task

REGISTRY = copying()
MOSTLY = [[None] * 8 + [0, 0], [None, 5, None], *[[0] * 10] * 8]  # few cells are left, so few steps


def events_of(**changes: object) -> list[dict]:
    request = read_request(json.dumps({"task": task(), **changes}).encode(), REGISTRY.names(), Limits())
    events: list[dict] = []
    perform(prepare(request, REGISTRY), events.append, lambda: None)
    return events


def steps_of(events: list[dict]) -> list[dict]:
    return [event for event in events if event["event"] == "step"]


METHODS = ["routing", "soft-routing", "mixture", "product", "superdiff", "single", "views"]
RULES = ["fast", "exact", "margin:0.9", "entropy:0.005", "product:0.9", "frechet:0.9", "block:10x3"]
BOTH = [
    *((method, rule) for method in METHODS for rule in ("confidence:7", "ancestral:7")),
    *(("routing", rule) for rule in RULES),
]


@pytest.mark.parametrize(("method", "rule"), BOTH)
def test_steps_are_those_of_the_trace(method: str, rule: str) -> None:
    experts = {"single": ["odd"], "views": ["where", "odd"]}.get(method, ["even", "odd"])
    events = events_of(method=method, experts=experts, reveal=rule, given=MOSTLY)
    trace = Trace.from_json(events[-1]["trace"])
    steps = steps_of(events)
    assert len(steps) == len(trace.steps) > 0
    for number, (seen, true) in enumerate(zip(steps, trace.steps, strict=True)):
        assert seen["number"] == number
        assert seen["x"] == true.x[0][0]
        assert seen["revealed"] == true.revealed[0][0]
        asked = [cell for cell, margin in enumerate(true.margin[0][0]) if margin is not None]
        assert seen["cells"] == asked
        if true.routing is not None:
            assert seen["routing"] == [true.routing[0][0][cell] for cell in asked]
    assert steps[-1]["x"] == events[-1]["canvas"]


def test_distributions_are_those_of_the_experts() -> None:
    for step in steps_of(events_of(reveal="confidence:4")):
        assert len(step["experts"]) == 2
        for voice in [*step["experts"], step["composed"]]:
            assert len(voice["best"]) == len(voice["log_doubt"]) == len(voice["probs"]) == len(step["cells"])
            for best, probs in zip(voice["best"], voice["probs"], strict=True):
                assert abs(sum(probs) - 1000) <= 5
                assert probs[best] == max(probs)
        # Hard routing follows the expert with the least doubt of those it compares.
        for place, speaker in enumerate(step["routing"]):
            doubts = [doubts[place] for doubts in step["compared"]]
            assert doubts[speaker] == min(doubts)


def test_no_distributions_unless_asked_for() -> None:
    for step in steps_of(events_of(detail=False)):
        assert all("probs" not in voice for voice in step["experts"])


def test_temperatures_change_what_is_compared() -> None:
    plain = steps_of(events_of())[0]
    sharp = steps_of(events_of(temperatures={"odd": 0.1}))[0]
    assert sharp["compared"][1] != plain["compared"][1]
    assert sharp["experts"] == plain["experts"]
    assert set(sharp["routing"]) == {1}


def test_weights_are_told_beside_the_heaviest() -> None:
    """What the map draws: who counts most at each cell, and for how much of it."""
    steps = steps_of(events_of(method="evidence"))
    assert steps[0]["weights"] == [[50] * 100] * 2  # nothing is known before the first cell
    for step in steps:
        for speaker, *each in zip(step["routing"], *step["weights"], strict=True):
            assert sum(each) in (99, 100, 101)
            assert each[speaker] == max(each)
    assert max(weight for step in steps for of_expert in step["weights"] for weight in of_expert) > 60
    assert all(step["weights"] is None for step in steps_of(events_of()))


def test_a_vote_shows_one_run_after_the_other() -> None:
    events = events_of(method="vote", runs=3, reveal="confidence:5", seed=3)
    steps = steps_of(events)
    assert sorted(step["number"] for step in steps) == list(range(10))
    runs = {run: [step for step in steps if step["run"] == run] for run in (0, 1)}
    for run in (0, 1):
        assert [len(step["experts"]) for step in runs[run]] == [1] * 5
        last = max(runs[run], key=lambda step: step["number"])
        assert 10 not in last["x"]
    assert events[-1]["trace"] is None


def test_particles_follow_the_first_of_them() -> None:
    events = events_of(method="fkc", particles=4, given=MOSTLY, reveal="ancestral:6")
    steps = steps_of(events)
    assert steps
    for before, after in itertools.pairwise(steps):
        assert [cell for cell, value in enumerate(before["x"]) if value == 10] == after["cells"]


def test_given_cells_are_kept_and_nobody_is_asked_about_them() -> None:
    given = [[9, None, 9]]
    events = events_of(given=given)
    assert events[0]["masked"] == 98
    for step in steps_of(events):
        assert 0 not in step["cells"]
        assert step["x"][0] == step["x"][2] == 9
    assert events[-1]["canvas"][0] == 9
    assert events[-1]["right"] is False


def test_a_canvas_without_a_hidden_cell_takes_no_step() -> None:
    events = events_of(given=[[1] * 10] * 10)
    assert [event["event"] for event in events] == ["start", "answer"]
    assert events[-1]["canvas"] == [1] * 100
