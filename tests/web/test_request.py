"""A request is checked before anything is computed, and every refusal names the place."""

from __future__ import annotations

import json

import pytest

from factordiff.composition import method
from factordiff.composition.method import declare
from factordiff.composition.mixture import Mixture
from factordiff.composition.options import Option
from factordiff.errors import FactorDiffError, InvalidInput
from factordiff.sampling.rules import reveal_rule
from factordiff.web.about import about_server
from factordiff.web.asked_method import offered, validated
from factordiff.web.limits import Limits
from factordiff.web.request import read_request, request_model
from factordiff.web.schema import api_schema, request_schema
from tests.web.stubs import copying, task

KNOWN = ["even", "odd"]


def read(**changes: object):
    return read_request(json.dumps({"task": task(), **changes}).encode(), KNOWN, Limits())


def test_only_the_task_is_needed() -> None:
    request = read()
    assert request.names == ("even", "odd")
    assert request.how.name == "routing"
    assert request.options == {}
    assert request.rule == reveal_rule("fast")
    assert request.fixed == {}
    assert read(experts=["odd"]).how.name == "single"
    assert read(method="evidence").rule == reveal_rule("exact")  # what suits the method


def test_numbers_are_put_in_the_order_of_the_experts() -> None:
    turned = read(experts=["odd", "even"], temperatures={"even": 0.25})
    assert turned.options == {"temperatures": (1.0, 0.25)}
    assert read(temperatures=[1, 0.25]).options == {"temperatures": (1.0, 0.25)}


def test_given_cells_are_places_on_the_canvas() -> None:
    assert read(given=[[None, 3], [], [7]]).fixed == {(0, 1): 3, (2, 0): 7}


GRID_11 = [[0] * 11]
WRONG = [
    ({"task": None}, "task: expected an object, got None"),
    ({"task": {"train": [], "test": []}}, "task, train: list should have at least 1 item"),
    ({"task": {**task(), "train": task()["train"] * 11}}, "11 pairs, expected at most 10"),
    (
        {"task": {**task(), "test": [{"input": GRID_11}]}},
        "task, test, 0, input, 0: list should have at most 10",
    ),
    ({"task": {**task(), "test": [{"input": [[0, 1], [2]]}]}}, "test pair 0, input"),
    (
        {"task": {**task(), "test": [{"input": [[10]]}]}},
        "task, test, 0, input, 0, 0: expected less than or equal to 9, got 10",
    ),
    ({"task": {**task(), "test": [{"input": [[1]]}] * 11}}, "11 pairs, expected at most 10"),
    ({"test": 1}, "test: expected a whole number from 0 to 0, got 1"),
    ({"test": True}, "test: expected a valid integer, got True"),
    ({"experts": []}, "experts: list should have at least 1 item"),
    ({"experts": ["a", "b", "c", "d", "e", "f", "g"]}, "experts: expected at most 6 names, got 7"),
    ({"experts": ["nobody"]}, "experts: expected some of even, odd, got 'nobody'"),
    ({"experts": ["odd", "odd"]}, "odd is named twice"),
    ({"method": "magic"}, "method: expected 'drawn-expert', 'evidence', 'fkc'"),
    ({"router": "/etc"}, "body: unknown key 'router'"),
    ({"temperatures": {"odd": 0}}, "temperatures: expected a finite positive number for odd, got 0"),
    ({"temperatures": {"odd": 1e308}}, "temperatures: expected 0 or a size between 1e-30 and 1e+30 for odd"),
    ({"temperatures": {"who": 1}}, "no expert is called 'who'"),
    ({"temperatures": [1, 2, 3]}, "temperatures: expected 2 numbers, one per expert, got 3"),
    ({"temperatures": {"odd": "1"}}, "temperatures, odd: expected a valid number, got '1'"),
    (
        {"method": "mixture", "temperatures": [1, 2]},
        "the method 'mixture' does not take it; its options: weights",
    ),
    ({"method": "single"}, "'single' takes one expert, got 2"),
    ({"factors": "block:0x2"}, "factors: string should match pattern"),
    ({"factors": "block:HxW"}, "factors: string should match pattern"),
    ({"factors": 3}, "factors: expected a valid string, got 3"),
    ({"reveal": "never"}, "reveal: expected fast, exact, or one of"),
    ({"reveal": "confidence:1001"}, "reveal: expected at most 1000 steps, got 'confidence:1001'"),
    ({"reveal": "ancestral:9999+repair:0.5"}, "reveal: expected at most 1000 steps"),
    ({"reveal": {"rule": "fast"}}, "reveal: expected a valid string"),
    ({"method": "fkc", "particles": 17}, "particles: expected less than or equal to 16, got 17"),
    ({"method": "vote", "runs": 17}, "runs: expected less than or equal to 16, got 17"),
    ({"method": "fkc", "particles": 2.0}, "particles: expected a valid integer, got 2.0"),
    ({"method": "soft-routing", "softness": 0}, "softness: expected "),
    ({"method": "soft-routing", "softness": 10**400}, "softness: expected "),
    ({"seed": -1}, "seed: expected greater than or equal to 0, got -1"),
    ({"seed": 2**53}, "seed: expected less than or equal to 9007199254740991"),
    ({"given": [[10]]}, "given, 0, 0: expected less than or equal to 9, got 10"),
    ({"given": [[None] * 11]}, "given, 0: list should have at most 10 items"),
    ({"given": {}}, "given: expected a valid array, got {}"),
    ({"stream": 1}, "stream: expected a valid boolean, got 1"),
    ({"evidence": "yes"}, "evidence: expected a valid boolean, got 'yes'"),
    ({"attempt": 3}, "attempt: expected 1 or 2, got 3"),
    ({"deadline": 1e9}, "deadline: expected less than or equal to 60"),
    ({"version": 2}, "version: expected 1, got 2"),
    ({"colour": 1}, "body: unknown key 'colour'"),
]


@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_named(changes: dict, sentence: str) -> None:
    with pytest.raises(FactorDiffError) as refused:
        read(**changes)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"seed": NaN}', b"[" * 100_000, b'{"seed":' + b"9" * 5000 + b"}"],
)
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(FactorDiffError):
        read_request(body, KNOWN, Limits())


def test_the_schema_has_every_option_of_every_method_that_is_offered() -> None:
    schema = request_schema(Limits())
    options = {option.name: option for method in offered().values() for option in method.options}
    assert {"temperatures", "factors", "particles", "runs", "beta", "weights", "softness"} <= options.keys()
    for name, option in options.items():
        assert schema["properties"][name]["description"] == option.help
    assert json.dumps(api_schema(Limits()))


def test_a_method_of_ones_own_is_in_the_request_and_in_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "_SPECS", dict(method._SPECS))
    sharpness = Option("sharpness", "How sharp.", default=0.5, most=2.0)
    declare("toy", sharpness)(lambda sharpness: Mixture())
    assert "toy" in request_schema(Limits())["properties"]["method"]["anyOf"][0]["enum"]
    assert request_schema(Limits())["properties"]["sharpness"]["description"] == "How sharp."
    assert read(method="toy", sharpness=1.5).options == {"sharpness": 1.5}
    with pytest.raises(FactorDiffError, match="sharpness: expected less than or equal to 2, got 3"):
        read(method="toy", sharpness=3)
    told = about_server(copying(), Limits())["methods"]
    assert [one["options"][0]["help"] for one in told if one["name"] == "toy"] == ["How sharp."]


def test_a_key_that_occurs_twice_is_refused() -> None:
    pair = '{"input": [[0]], "output": [[0]]}'
    task = f'"task": {{"train": [{pair}], "test": [{{"input": [[0]]}}]}}'
    for body, key in ((f'{{{task}, "seed": 1, "seed": 2}}', "seed"), (f"{{{task}, {task}}}", "task")):
        with pytest.raises(InvalidInput, match=f"body: the key '{key}' occurs twice in one object"):
            validated(request_model(Limits()), body.encode())
