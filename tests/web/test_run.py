"""The page's answers are the command line's."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from torch import Tensor

from factordiff import compose
from factordiff.arc.task import parse_task
from factordiff.composition.method import spec
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.networks.named import NamedExpert
from factordiff.networks.store import save_expert
from factordiff.solving.answer import Answer
from factordiff.solving.solver import solve
from factordiff.team.team import Team
from factordiff.web.about import fitting_methods, teams_of
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry, RegisteredExpert
from factordiff.web.request import read_request
from factordiff.web.run import perform, prepare
from tests.networks.small_networks import small
from tests.web.stubs import CELL, Copyist, copying, task


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> ExpertRegistry:
    """Two small networks whose every weight was stirred: sure of nothing, and not of one mind."""
    folder = tmp_path_factory.mktemp("experts")
    for seed, name in enumerate(("one", "two")):
        save_expert(small("trans-ir", seed=seed, layout=[10, 10]), folder / name, {"objective": "full"})
    return ExpertRegistry.load([str(folder / "one"), str(folder / "two")])


@pytest.mark.parametrize("method", ["routing", "fkc", "vote", "superdiff", "single"])
@pytest.mark.parametrize("seed", [0, 5])
def test_the_answer_for_a_seed_is_the_solvers(registry: ExpertRegistry, method: str, seed: int) -> None:
    names = registry.names()[:1] if method == "single" else registry.names()
    two_tests = {**task(), "test": [*task()["test"], {"input": [[5, 5], [2, 0]]}]}
    settings = {"factors": "row", "particles": 3, "runs": 3}
    taken = {option.name: settings[option.name] for option in spec(method).options if option.name in settings}
    body = {
        "task": two_tests, "test": 1, "experts": names, "method": method, "seed": seed,
        "reveal": "confidence:3", "given": [[None, 8]], **taken,
    }  # fmt: skip
    events, others = (performed(registry, {**body, "attempt": attempt}) for attempt in (1, 2))
    team = Team(
        tuple(NamedExpert(name, registry[name].expert) for name in names),
        method,
        taken,
        reveal="confidence:3",
    )
    parsed = parse_task(two_tests, "yours", "body")
    solved = solve(parsed, team, seed=seed, given={(0, 1): 8})[1]
    assert events[-1]["canvas"] == solved.canvas.tolist()
    assert events[-1]["grid"] == solved.grid.tolist()
    assert_the_solvers(others[-1], solved)


def test_rows_of_zeros_that_the_page_sends_stay_inside_their_grids() -> None:
    """On the canvas they look like padding: the experts are told where each grid ends, in attempt 2 as well."""
    told: list[Condition] = []

    class Watching(Copyist):
        def encode(self, condition: Condition) -> Tensor:
            told.append(condition)
            return super().encode(condition)

    zeros = [[1, 2], [0, 0], [0, 0]]
    body = {
        "task": {"train": [{"input": zeros, "output": [[3, 0, 0, 0]]}], "test": [{"input": [[5], [0]]}]},
        "reveal": "confidence:2",
    }
    watching = ExpertRegistry([RegisteredExpert(name, Watching(CELL >= 0)) for name in ("one", "two")])
    performed(watching, {**body, "attempt": 2})
    seen = set()
    for condition in told:
        for masks in zip(*(mask.flatten(0, -2) for mask in condition.inside or ()), strict=True):
            shapes = []
            for mask in masks:
                plane = mask.view(10, 10)
                height, width = int(plane.any(1).sum()), int(plane.any(0).sum())
                assert torch.equal(plane.nonzero(), torch.ones(height, width).nonzero())
                shapes.append((height, width))
            seen.add(tuple(shapes))
    assert seen == {((2, 1), (3, 2), (1, 4)), ((1, 2), (2, 3), (4, 1))}


@pytest.mark.parametrize("method", ["routing", "mixture", "vote", "single"])
def test_attempt_2_is_the_solvers(registry: ExpertRegistry, method: str) -> None:
    """Nothing is given, so the team is asked the reflected task."""
    names = registry.names()[:1] if method == "single" else registry.names()
    body = {"task": task(), "experts": names, "method": method, "seed": 3, "reveal": "confidence:3"}
    events = performed(registry, {**body, "attempt": 2})
    team = Team(
        tuple(NamedExpert(name, registry[name].expert) for name in names), method, reveal="confidence:3"
    )
    solved = solve(parse_task(task(), "yours", "body"), team, seed=3)[0]
    assert solved.second is not None
    assert "reflections of the task" in solved.second.reason
    assert_the_solvers(events[-1], solved)
    assert [events[0]["event"], events[-1]["event"]] == ["start", "second"]
    told = [(event["done"], event["total"]) for event in events[1:-1] if event["event"] == "progress"]
    assert len(told) == len(events) - 2
    ended = [total for done, total in told if done == total]
    runs = {"vote": [300, 300]}.get(method, [100])  # three runs of each expert
    assert ended == runs + [4 * cells for cells in runs]  # attempt 1 once more, then four reflections


def performed(registry: ExpertRegistry, body: dict) -> list[dict]:
    """All events of a request."""
    events: list[dict] = []
    request = read_request(json.dumps(body).encode(), registry.names(), Limits())
    perform(prepare(request, registry), events.append, lambda: None)
    return events


def assert_the_solvers(event: dict, solved: Answer) -> None:
    """The last event of a request for attempt 2 is what `solve` gives."""
    second = solved.second
    assert event["grid"] == (None if second is None else second.grid.tolist())
    assert event["reason"] == (None if second is None else second.reason)
    assert event["executed_passes"] == solved.executed_passes


@pytest.mark.parametrize("method", ["routing", "vote", pytest.param("fkc", marks=pytest.mark.slow)])
def test_what_is_left_out_is_as_the_command_line_has_it(registry: ExpertRegistry, method: str) -> None:
    """Only the task, the method and the seed: the answers are those of a team with its own defaults."""
    events: list[dict] = []
    request = read_request(
        json.dumps({"task": task(), "method": method, "seed": 2}).encode(), registry.names(), Limits()
    )
    perform(prepare(request, registry), events.append, lambda: None)
    team = Team(tuple(NamedExpert(name, registry[name].expert) for name in registry.names()), method)
    solved = solve(parse_task(task(), "yours", "body"), team, seed=2, attempts=1)[0]
    assert events[-1]["canvas"] == solved.canvas.tolist()


def test_attempt_1_costs_nothing_of_attempt_2() -> None:
    copyists = copying()

    def passes(attempt: int) -> int:
        before = sum(copyists[name].expert.passes for name in copyists.names())
        told = performed(copyists, {"task": task(), "reveal": "confidence:4", "attempt": attempt})[-1]
        cost = sum(copyists[name].expert.passes for name in copyists.names()) - before
        if attempt == 1:
            assert told["passes"]["executed"] == cost
        return cost

    assert passes(1) == 2 * 4
    assert passes(2) > 2 * passes(1)


def test_an_attempt_2_that_is_right_is_said_to_be(registry: ExpertRegistry) -> None:
    def told(test: dict) -> list[bool | None]:
        body = {"task": {**task(), "test": [test]}, "experts": registry.names(), "reveal": "confidence:3"}
        return [performed(registry, {**body, "attempt": attempt})[-1]["right"] for attempt in (1, 2)]

    asked = task()["test"][0]
    assert told(asked) == [False, False]
    body = {"task": task(), "experts": registry.names(), "reveal": "confidence:3", "attempt": 2}
    other = performed(registry, body)[-1]["grid"]
    assert told({**asked, "output": other}) == [False, True]
    assert told({"input": asked["input"]}) == [None, None]


class OfOneColor(Copyist):
    """Believes in color 3 everywhere, however the task is turned."""

    def encode(self, condition: Condition) -> Tensor:
        return torch.full_like(condition.query, 3)


def test_a_team_without_another_answer_says_so() -> None:
    """All reflections agree, and a vote has no least sure cell of its own."""
    experts = ExpertRegistry([RegisteredExpert(name, OfOneColor(CELL >= 0)) for name in ("one", "two")])
    body = {"task": task(), "method": "vote", "reveal": "confidence:2", "attempt": 2}
    told = performed(experts, body)[-1]
    assert (told["grid"], told["reason"], told["right"]) == (None, None, None)


def test_folders_of_one_name_are_told_apart(tmp_path) -> None:
    for parent in ("a", "b"):
        save_expert(small("trans-ir", layout=[10, 10]), tmp_path / parent / "same", {"objective": "color"})
    registry = ExpertRegistry.load([str(tmp_path / "a" / "same"), str(tmp_path / "b" / "same")])
    assert registry.names() == ["same", "same-2"]
    assert registry["same-2"].objective == "color"
    assert registry["same"].about["backbone"] == "trans-ir"


def test_a_router_is_the_one_that_was_fitted_to_the_experts(registry: ExpertRegistry) -> None:
    """No client names it; experts that none was fitted to are refused, before and when it is asked for."""
    shipped = ExpertRegistry.load(["trans-color", "trans-occ-default-head"])
    body = {"task": task(), "experts": shipped.names(), "method": "learned", "reveal": "confidence:2"}
    events = performed(shipped, body)
    team = dataclasses.replace(compose("col+occ-default-head"), reveal="confidence:2")
    solved = solve(parse_task(task(), "yours", "body"), team, attempts=1)
    assert events[-1]["canvas"] == solved[0].canvas.tolist()
    assert fitting_methods(shipped, shipped.names())["learned"] is None
    (told,) = teams_of(shipped)
    assert (told["name"], told["options"]) == ("col+occ-default-head", {})
    refused = "'learned' takes experts that a shipped router was fitted to, got one, two"
    assert refused in str(fitting_methods(registry, registry.names())["learned"])
    with pytest.raises(InvalidInput, match=refused):
        performed(registry, {**body, "experts": registry.names()})
