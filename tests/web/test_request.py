"""A request is checked before anything is computed, and every refusal names the place."""

from __future__ import annotations

import json

import pytest

from factordiff.errors import FactorDiffError
from factordiff.web.limits import Limits
from factordiff.web.request import KEYS, parse_body, read_request
from factordiff.web.schema import api_schema, request_schema
from tests.web.stubs import task

KNOWN = ["even", "odd"]


def read(**changes: object):
    return read_request({"task": task(), **changes}, KNOWN, Limits())


def test_only_the_task_is_needed() -> None:
    request = read()
    assert request.experts == ("even", "odd")
    assert request.method == "routing"
    assert request.temperatures is None
    assert request.reveal.rule == "fast"
    assert request.given == ()
    assert read(experts=["odd"]).method == "single"


def test_a_vote_has_as_many_runs_as_on_the_command_line() -> None:
    for method, count in (("fkc", 8), ("rne", 8), ("vote", 3)):
        assert read(method=method).particles == count
    assert read(method="vote", particles=5).particles == 5


def test_temperatures_are_put_in_the_order_of_the_experts() -> None:
    assert read(experts=["odd", "even"], temperatures={"even": 0.25}).temperatures == (1.0, 0.25)
    assert read(temperatures={"even": 1}).temperatures is None


def test_given_cells_are_places_on_the_canvas() -> None:
    assert read(given=[[None, 3], [], [7]]).given == ((1, 3), (20, 7))


GRID_11 = [[0] * 11]
WRONG = [
    ({"task": None}, "'train' is missing"),
    ({"task": {"train": [], "test": []}}, "train: expected a list of pairs, at least one"),
    ({"task": {**task(), "train": task()["train"] * 11}}, "11 pairs, expected at most 10"),
    ({"task": {**task(), "test": [{"input": GRID_11}]}}, "test pair 0, input: 1x11 cells"),
    (
        {"task": {**task(), "test": [{"input": [[10]]}]}},
        "cell (row 0, column 0): expected a whole number 0..9, got 10",
    ),
    ({"task": {**task(), "test": [{"input": [[1]]}] * 11}}, "11 pairs, expected at most 10"),
    ({"test": 1}, "test: expected a whole number from 0 to 0, got 1"),
    ({"test": True}, "test: expected a whole number from 0 to 0, got true"),
    ({"experts": []}, "experts: expected a list of 1 to 6 names"),
    ({"experts": ["nobody"]}, "experts: expected some of even, odd, got 'nobody'"),
    ({"experts": ["odd", "odd"]}, "odd is named twice"),
    ({"method": "magic"}, "method: expected one of evidence, fkc"),
    ({"temperatures": {"odd": 0}}, "temperatures, odd: expected a number from 0.001 to 1000, got 0"),
    ({"temperatures": {"who": 1}}, "'who' is not among the experts"),
    ({"temperatures": [1, 2]}, "temperatures: expected an object"),
    ({"factors": "block:0x2"}, "factors: expected one of pixel"),
    ({"factors": "block:HxW"}, "factors: expected one of pixel"),
    ({"factors": 3}, "factors: expected one of pixel"),
    ({"reveal": {"rule": "never"}}, "reveal, rule: expected one of fast"),
    ({"reveal": {"steps": 1001}}, "reveal, steps: expected a whole number from 1 to 1000, got 1001"),
    ({"reveal": {"pace": 1}}, "reveal: expected an object with"),
    ({"particles": 17}, "particles: expected a whole number from 1 to 16, got 17"),
    ({"particles": 2.0}, "particles: expected a whole number from 1 to 16, got 2.0"),
    ({"softness": 1e-9}, "softness: expected a number"),
    ({"softness": 10**400}, "softness: expected a number"),
    ({"seed": -1}, "seed: expected a whole number"),
    ({"seed": 2**53}, "seed: expected a whole number"),
    ({"given": [[10]]}, "given, cell (row 0, column 0): expected 0..9 or null, got 10"),
    ({"given": [[None] * 11]}, "given, row 0: expected at most 10"),
    ({"given": {}}, "given: expected at most 10 rows"),
    ({"stream": 1}, "stream: expected true or false, got 1"),
    ({"alternative": "yes"}, "alternative: expected true or false, got 'yes'"),
    ({"deadline": 1e9}, "deadline: expected a number from 0.01 to 60"),
    ({"version": 2}, "version: this server speaks version 1, got 2"),
    ({"colour": 1}, "body: unknown key 'colour'"),
]


@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_named(changes: dict, sentence: str) -> None:
    with pytest.raises(FactorDiffError) as refused:
        read(**changes)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"seed": NaN}', b"[" * 100_000, b'{"seed":' + b"9" * 5000 + b"}"],
)
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(FactorDiffError):
        read_request(parse_body(body), KNOWN, Limits())


def test_the_schema_names_every_key_and_no_other() -> None:
    schema = request_schema(Limits())
    assert schema["properties"].keys() == KEYS
    assert json.dumps(api_schema(Limits()))
