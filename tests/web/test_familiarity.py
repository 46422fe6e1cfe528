"""How far a task is from what the experts know: measured on known tasks, said with numbers."""

from __future__ import annotations

import json

import pytest

from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import read_request
from factordiff.web.run import perform, prepare
from tests.web.serving import LIBRARY
from tests.web.stubs import copying, task


def told(registry: ExpertRegistry, spelled: dict, **changes: object) -> dict | None:
    body = {"task": spelled, "experts": registry.names()[:2], "evidence": True, "detail": False, **changes}
    events: list[dict] = []
    request = read_request(json.dumps(body).encode(), registry.names(), Limits())
    perform(prepare(request, registry), events.append, lambda: None)
    return events[-1]["evidence"]


def drawn(rule: str) -> dict:
    """Three demonstrations of a rule: to copy, or noise that has none."""
    grids = [
        [[(7 * row + 3 * column + 5 * n) % 10 for column in range(4)] for row in range(4)] for n in range(4)
    ]
    out = (
        grids
        if rule == "copy"
        else [[[(value * 7 + 3) % 10 for value in row] for row in grid] for grid in grids[::-1]]
    )
    pairs = [{"input": given, "output": result} for given, result in zip(grids, out, strict=True)]
    return {"train": pairs[:3], "test": [{"input": grids[3]}]}


def test_copyists_are_surer_of_copies_than_of_anything_they_are_shown() -> None:
    registry = copying()
    copied, noise = told(registry, drawn("copy")), told(registry, drawn("noise"))
    assert copied is not None
    assert noise is not None
    assert copied["explained"] is True
    for one, other in zip(copied["experts"], noise["experts"], strict=True):
        assert one["expert"] == other["expert"]
        assert one["bits"] < other["bits"]
        assert one["known_median"] <= one["known_worst"]
        assert (one["known_median"], one["known_worst"]) == (other["known_median"], other["known_worst"])


def test_one_demonstration_is_no_evidence_and_nobody_is_asked_unless_wanted() -> None:
    registry = copying()
    found = told(registry, task())
    assert found is not None
    assert (found["demonstrations"], found["explained"], found["experts"]) == (1, None, [])
    assert told(registry, drawn("copy"), evidence=False) is None
    assert not registry.known.measured


def test_who_stops_in_between_leaves_what_was_measured_to_the_next() -> None:
    registry = copying()
    expert, known = registry["even"].expert, registry.known
    left = iter(range(5))

    def check() -> None:
        if next(left, None) is None:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        known.bits("even", expert, registry.device, check)
    begun = list(known.measured["even"])
    assert len(begun) == 5
    assert known.bits("even", expert, registry.device, lambda: None)[:5] == begun
    assert len(known.measured["even"]) == len(known.tasks) > 5


@pytest.mark.slow
def test_the_shipped_experts_know_their_tasks_and_not_noise() -> None:
    registry = ExpertRegistry.load(["trans-full", "conv-full"])
    known = [told(registry, LIBRARY.task(one["id"], "rearc", 0)) for one in LIBRARY.listing[1:40:4]]
    assert sum(one is not None and one["explained"] is True for one in known) >= 8
    noise = told(registry, drawn("noise"))
    assert noise is not None
    assert noise["explained"] is False
