"""Anything at all as a body: a status that is meant for it, a sentence, never a traceback."""

from __future__ import annotations

import copy
import http.client
import json
import random

import pytest

from tests.web.serving import Served, ask
from tests.web.stubs import task

VALID = {
    "version": 1, "task": task(), "test": 0, "experts": ["even", "odd"], "method": "routing",
    "temperatures": {"even": 0.5}, "factors": "row", "reveal": "confidence:2", "seed": 3,
    "given": [[None, 2, None, *[0] * 7], *[[0] * 10] * 9], "attempt": 2, "evidence": False,
    "stream": False, "detail": False, "deadline": 5.0,
}  # fmt: skip
VALID_TEXT = {
    "version": 1, "text": "return the value", "hidden": [[2, 4], [8, 12]], "experts": ["first", "second"],
    "method": "soft-routing", "temperatures": {"first": 0.5}, "reveal": "confidence:2", "seed": 3, "stream": False,
    "detail": False, "deadline": 5.0,
}  # fmt: skip
VALID_OF = {"solve": VALID, "infill": VALID_TEXT}
ODD = [
    None, True, False, 0, -1, 1, 3.5, 1e308, -1e308, 2**63, 10**200, "", "x", "routing", "\u0000", "\ud800", "é" * 50,
    [], {}, [[]],
    [[[]]], [None], [[None]], [[1, 2], [3]], [[11]], [["1"]], {"rule": []}, {"": ""}, {"train": 1}, [0] * 200,
    [[0] * 30] * 30, "block:99999999999x1", "vote", "fkc", "views", "superdiff-and", "soft-routing",
]  # fmt: skip


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The path of everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, part in inside for deeper in places(part, (*path, key)))]


def mutated(rng: random.Random, valid: dict) -> bytes:
    """A valid body with a few things replaced, removed, doubled; sometimes its text is damaged as well."""
    body = copy.deepcopy(valid)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        key = rng.choice(list(body) or ["seed"])
        path = rng.choice(places(body.setdefault(key, 0), (key,)))
        holder = body
        for key in path[:-1]:
            holder = holder[key]
        kind = rng.random()
        if kind < 0.7:
            holder[path[-1]] = copy.deepcopy(rng.choice(ODD))
        elif kind < 0.85:
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[rng.choice(["colour", "Task", "", "__class__"])] = rng.choice(ODD)
        else:
            holder.extend(copy.deepcopy(holder) * rng.choice([1, 12]))
    text = json.dumps(body).encode()
    damage = rng.random()
    if damage < 0.1:
        cut = rng.randrange(len(text))
        return text[:cut] + bytes(rng.randrange(256) for _ in range(3)) + text[cut + rng.randrange(4) :]
    if damage < 0.15:
        return text[: rng.randrange(len(text))]
    return text


def fuzz(served: Served, address: str, count: int, seed: int) -> None:
    rng = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    seen: dict[int, int] = {}
    for _ in range(count):
        body = mutated(rng, VALID_OF[address])
        reply = ask(connection, "POST", f"/api/v1/{address}", body)
        seen[reply.status] = seen.get(reply.status, 0) + 1
        assert reply.status in (200, 422), (reply.status, body, reply.body)
        assert b"Traceback" not in reply.body
        if reply.status == 422:
            assert len(reply.json["reason"]) > 10, body
    connection.close()
    assert not served.faults
    assert seen[200] > count / 50  # some are harmless: the fuzz is near what is valid
    assert seen[422] > count / 2


def test_a_thousand_bodies(served: Served) -> None:
    fuzz(served, "solve", 1_000, seed=1)


def test_some_texts(reading: Served) -> None:
    fuzz(reading, "infill", 300, seed=1)


@pytest.mark.slow
def test_ten_thousand_bodies(reading: Served) -> None:
    fuzz(reading, "solve", 10_000, seed=2)
    fuzz(reading, "infill", 3_000, seed=2)
