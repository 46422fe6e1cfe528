"""POST /infill and GET /texts: anybody's text, filled in as `factordiff infill` does it, every step told."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from factordiff.team.infill import infill
from factordiff.team.team import Team
from factordiff.text.alphabet import BYTES, LETTERS, values
from factordiff.text.windows import LENGTH
from factordiff.web.about import about_texts
from factordiff.web.infilling import LONGEST, asked_infill
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry, text_experts
from tests.web.serving import Reply, Served
from tests.web.stubs import FIRST, SECOND, spellers


def text_of(length: int) -> str:
    return ((FIRST + SECOND) * (length // 20 + 1))[:length]


def run(registry: ExpertRegistry | None = None, **body: object) -> list[dict]:
    events: list[dict] = []
    known = registry or spellers()
    asked = asked_infill(json.dumps(body).encode(), known.names(), lambda: known, Limits())
    asked.prepare()(events.append, lambda: None)
    return events


def ask(reading: Served, **body: object) -> Reply:
    return reading.ask("POST", "/api/v1/infill", body)


@pytest.mark.parametrize("method", ["routing", "soft-routing", "mixture", "evidence", "vote", "hex"])
@pytest.mark.parametrize("length", [40, 600])
def test_it_is_what_infill_answers(method: str, length: int) -> None:
    text, hidden = text_of(length), [[3, 9], [20, 39]] + [[at, at + 7] for at in range(60, length - 7, 11)]
    events = run(text=text, hidden=hidden, method=method, reveal="confidence:4", seed=3)
    team = Team(tuple(spellers().entries.values()), method, reveal="confidence:4")
    x_t = torch.from_numpy(values(text).astype(np.int64))
    for begin, end in hidden:
        x_t[begin:end] = BYTES.mask
    expected = infill(team, x_t, LENGTH, seed=3)
    answer = events[-1]
    assert answer["canvas"] == expected.x_0.tolist()
    assert answer["passes"]["executed"] == expected.passes
    assert answer["text"] == "".join(LETTERS[value] for value in expected.x_0)
    assert answer["right"] == (answer["text"] == text)


def test_steps_are_told_over_the_whole_text() -> None:
    text, hidden = text_of(600), [[at, at + 5] for at in range(10, 590, 13)]
    start, *steps, answer = run(text=text, hidden=hidden, method="routing", reveal="confidence:6")
    assert start["masked"] == 5 * len(hidden)
    assert [step["number"] for step in steps] == list(range(len(steps)))
    places = {place for begin, end in hidden for place in range(begin, end)}
    x, decided = [BYTES.mask if place in places else LETTERS.index(text[place]) for place in range(600)], {}
    for step in steps:
        assert set(step["revealed"]) <= set(step["cells"]) <= places
        for place, (before, after) in enumerate(zip(x, step["x"], strict=True)):
            if before != after:  # filled in this step, or a window's last quarter is hidden again
                assert place in step["revealed"] or before != BYTES.mask == after or place in step["cells"]
        decided |= dict.fromkeys(step["revealed"])
        x = step["x"]
    assert x == answer["canvas"]
    assert set(decided) == places
    assert answer["right"]
    assert min(steps[-1]["cells"]) > LENGTH  # the last of several windows


def test_what_is_hidden_is_shown_to_nobody() -> None:
    asked = {"hidden": [[5, 12]], "method": "routing", "reveal": "exact"}
    one, other = run(text=text_of(30), **asked), run(text=f"abcde{'?' * 7}{text_of(30)[12:]}", **asked)
    assert one[-1]["canvas"] == other[-1]["canvas"]
    assert one[1:-1] == other[1:-1]
    assert (one[-1]["right"], other[-1]["right"]) == (True, False)


def test_only_the_likeliest_letters_are_sent() -> None:
    step = run(text=text_of(30), hidden=[[5, 12]], method="routing")[1]
    likeliest = step["experts"][0]["likeliest"][0]
    assert len(likeliest) <= 5
    assert LETTERS[likeliest[0][0]] == "f"


def test_over_a_connection(reading: Served) -> None:
    body = {"text": text_of(40), "hidden": [[4, 20]], "experts": ["first", "second"]}
    events = ask(reading, **body).events
    assert [event["event"] for event in (events[0], events[-1])] == ["start", "answer"]
    assert ask(reading, **body, stream=False).json["text"] == text_of(40)
    told = reading.ask("GET", "/api/v1/texts").json
    assert [one["name"] for one in told["experts"]] == ["first", "second"]
    described = reading.ask("GET", "/api/v1/openapi.json").json["paths"]["/api/v1/infill"]["post"]
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["text", "hidden"]
    assert "temperatures" in schema["properties"]  # the methods' own options


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            {"text": "naïve", "hidden": [[0, 1]]},
            "text: character 2 is 'ï'; expected newline and printable ASCII",
        ),
        ({"text": "abc", "hidden": []}, "hidden: "),
        ({"text": "", "hidden": [[0, 1]]}, "text: "),
        ({"text": "abc", "hidden": [[1, 4]]}, "hidden, 0: expected two places in order, up to 3, got 1, 4"),
        ({"text": "abc", "hidden": [[2, 2]]}, "hidden, 0: expected two places in order, up to 3, got 2, 2"),
        ({"text": "abc", "hidden": [[-1, 2]]}, "hidden, 0, 0: expected greater than or equal to 0"),
        (
            {"text": "abcdef", "hidden": [[0, 3], [2, 4]]},
            "hidden, 1: it begins at 2, before the one before it ends (3)",
        ),
        (
            {"text": "abc", "hidden": [[0, 1]], "experts": ["third"]},
            "experts: expected some of first, second",
        ),
        ({"text": "abc", "hidden": [[0, 1]], "method": "views"}, "method: 'views'"),
        ({"text": "abc", "hidden": [[0, 1]], "method": "mixture", "beta": 1}, "beta: "),
        ({"text": "abc", "hidden": [[0, 1]], "factors": "row", "method": "routing"}, "layout: "),
        ({"text": "x" * (LONGEST + 1), "hidden": [[0, 1]]}, "text: "),
        ({"text": "abc"}, "hidden: it is missing"),
    ],
)
def test_anything_else_is_refused(reading: Served, body: dict, reason: str) -> None:
    reply = ask(reading, **body)
    assert reply.status == 422
    assert reply.json["reason"].startswith(reason), reply.json["reason"]
    assert len(reply.json["reason"]) < 400


def test_the_shipped_experts_fill_in_their_passages() -> None:
    registry = text_experts(torch.device("cpu"))
    told = about_texts(registry, Limits())
    assert [one["name"] for one in told["experts"]] == ["text-prose", "text-code", "text-all"]
    passage = told["examples"][0]
    asked = {name: passage[name] for name in ("text", "hidden")}
    names = ["text-prose", "text-code"]
    answer = run(registry, **asked, experts=names, method="soft-routing", reveal="confidence:25")[-1]
    assert answer["right"]  # as the story of it says


def test_methods_say_whether_they_take_experts_of_text(reading: Served) -> None:
    found = reading.ask("GET", "/api/v1/methods?experts=first,second").json["methods"]
    assert found["routing"] is None
    assert found["views"].startswith("method: 'views' takes")
    assert (
        found["learned"]
        == "method: 'learned' takes experts that a shipped router was fitted to, got first, second; "
        "`factordiff fit` fits one for others"
    )
