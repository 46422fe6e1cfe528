"""The page's answers are the command line's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from factordiff.arc.task import parse_task
from factordiff.composition.method import spec
from factordiff.networks.named import NamedExpert
from factordiff.networks.store import save_expert
from factordiff.solving.solver import solve
from factordiff.team.team import Team
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import read_request
from factordiff.web.run import perform, prepare
from tests.networks.small_networks import small
from tests.web.stubs import copying, task


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
        "reveal": "confidence:3", "given": [[None, 8]], "alternative": True, **taken,
    }  # fmt: skip
    request = read_request(json.dumps(body).encode(), registry.names(), Limits())
    events: list[dict] = []
    perform(prepare(request, registry), events.append, lambda: None)
    team = Team(
        tuple(NamedExpert(name, registry[name].expert) for name in names),
        method,
        taken,
        reveal=request.rule,
    )
    parsed = parse_task(two_tests, "yours", "body")
    solved = solve(parsed, team, seed=seed, given={(0, 1): 8}, attempts=1)[1]
    assert events[-1]["canvas"] == solved.canvas.tolist()
    assert events[-1]["grid"] == solved.grid.tolist()
    second = events[-1]["alternative"]
    others = [one for one in solved.alone if not np.array_equal(one.grid, solved.grid)]
    assert (second and second["by"]) == (others[0].name if others else None)
    if second:
        assert second["grid"] == others[0].grid.tolist()
    assert (method == "single") == (second is None)  # here the two never agree


@pytest.mark.parametrize("method", ["routing", "fkc", "vote"])
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


def test_attempt_2_is_left_out_unless_it_is_asked_for() -> None:
    copyists = copying()

    def answered(**changes: object) -> dict:
        events: list[dict] = []
        request = read_request(json.dumps({"task": task(), **changes}).encode(), copyists.names(), Limits())
        perform(prepare(request, copyists), events.append, lambda: None)
        return events[-1]

    def passes() -> int:
        return sum(copyists[name].expert.passes for name in copyists.names())

    assert answered()["alternative"] is None
    before = passes()
    once = answered()["passes"]
    cost = passes() - before
    assert answered(alternative=True)["alternative"] is None  # both copy, alone and together
    assert passes() - before > 2 * cost
    assert answered(alternative=True)["passes"] == once


def test_an_attempt_2_that_is_right_is_said_to_be(registry: ExpertRegistry) -> None:
    body = {"task": task(), "experts": registry.names(), "reveal": "confidence:3"}

    def second(body: dict) -> dict:
        events: list[dict] = []
        request = read_request(json.dumps({**body, "alternative": True}).encode(), registry.names(), Limits())
        perform(prepare(request, registry), events.append, lambda: None)
        return events[-1]

    told = second(body)
    assert told["alternative"]["right"] is False
    truth = {**task(), "test": [{**task()["test"][0], "output": told["alternative"]["grid"]}]}
    again = second({**body, "task": truth})
    assert (again["right"], again["alternative"]["right"]) == (False, True)
    unknown = second({**body, "task": {**task(), "test": [{"input": task()["test"][0]["input"]}]}})
    assert unknown["alternative"]["right"] is None


def test_folders_of_one_name_are_told_apart(tmp_path) -> None:
    for parent in ("a", "b"):
        save_expert(small("trans-ir", layout=[10, 10]), tmp_path / parent / "same", {"objective": "color"})
    registry = ExpertRegistry.load([str(tmp_path / "a" / "same"), str(tmp_path / "b" / "same")])
    assert registry.names() == ["same", "same-2"]
    assert registry["same-2"].objective == "color"
    assert registry["same"].about["backbone"] == "trans-ir"
