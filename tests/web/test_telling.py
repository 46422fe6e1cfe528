"""POST /tell: the runs of stories, over a real connection, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from factordiff.web import story_list
from factordiff.web.limits import Limits
from factordiff.web.record import record
from tests.web.serving import LIBRARY, Reply, Served, serve
from tests.web.test_stories import TASK, halves, story


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch, serve(halves(TASK)) as running:
        patch.setattr(story_list, "STORIES", (story(TASK),))
        yield running


def tell(served: Served, **body: object) -> Reply:
    return served.ask("POST", "/api/v1/tell", body)


def timeless(event: dict) -> dict:
    return {name: value for name, value in event.items() if name not in ("seconds", "trace")}


def test_what_is_told_is_what_is_recorded(served: Served) -> None:
    told = record(story(TASK), halves(TASK), LIBRARY)
    for run, events in enumerate(told.runs):
        found = tell(served, story="halves", run=run).events
        assert [timeless(event) for event in found] == [timeless(event) for event in events]


def test_the_last_event_alone_can_be_had(served: Served) -> None:
    assert tell(served, story="halves", run=1, stream=False).json["right"] is True


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"story": "nobody's"}, 'story: expected one of halves, got "nobody\'s"'),
        ({"story": "halves", "candidate": 1}, "candidate: expected a whole number from 0 to 0, got 1"),
        ({"story": "halves", "run": 2}, "run: expected a whole number from 0 to 1, got 2"),
        ({"story": "halves", "run": -1}, "run: expected greater than or equal to 0"),
        ({"story": "halves", "method": "vote"}, "body: unknown key 'method'; expected candidate, run"),
        ({}, "story: it is missing"),
        ({"story": "x" * 100_000}, "story: expected one of halves, got"),
    ],
)
def test_anything_else_is_refused(served: Served, body: dict, reason: str) -> None:
    reply = tell(served, **body)
    assert reply.status == 422
    assert reply.json["reason"].startswith(reason)
    assert len(reply.json["reason"]) < 400


def test_solves_and_stories_share_what_a_client_may_have_under_way() -> None:
    with serve(halves(TASK), Limits(per_client=0)) as running:
        for path in ("solve", "tell"):
            assert running.ask("POST", f"/api/v1/{path}", {}).status == 429


def test_it_is_described(served: Served) -> None:
    described = served.ask("GET", "/api/v1/openapi.json").json["paths"]["/api/v1/tell"]["post"]
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["story"]
