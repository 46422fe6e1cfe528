"""The stories of worlds come out as they claim, and all that they say follows from what was recorded."""

from __future__ import annotations

import re

import pytest
import torch

from factordiff.text.alphabet import LETTERS, letters
from factordiff.web.record import Recording, record
from factordiff.web.site import STATIC
from factordiff.web.story_list import STORIES
from factordiff.web.world_stories import LIKELIEST
from factordiff.web.world_story_list import MOSAIC, PASSAGES, TEXT
from tests.web.captions import counted, decided_by, quarters, wrong_cells
from tests.web.serving import LIBRARY
from tests.web.stubs import copying


@pytest.fixture(scope="module")
def mosaic() -> Recording:
    torch.set_num_threads(1)
    return record(MOSAIC, copying(), LIBRARY)  # the experts are the world's, whoever is served


@pytest.fixture(scope="module")
def text() -> Recording:
    torch.set_num_threads(1)
    return record(TEXT, copying(), LIBRARY)


def test_the_mosaic_holds_at_once(mosaic: Recording) -> None:
    assert mosaic.held
    assert (
        mosaic.candidate["number"] == MOSAIC.tasks[0].number
    )  # the first candidate: nothing is solved in vain


def test_every_model_was_trained_on_one_of_the_four(mosaic: Recording) -> None:
    for candidate in MOSAIC.candidates(LIBRARY):
        owners = candidate["picture"]["owners"]
        found = [
            {owner for cell, owner in enumerate(owners) if quarters([cell]) == [one]} for one in range(4)
        ]
        assert sorted(map(tuple, found)) == [(0,), (1,), (2,), (3,)]


def test_what_is_said_about_the_mosaic_is_what_happened(mosaic: Recording) -> None:
    assert [bool(wrong_cells(mosaic, run)) for run in (0, 1)] == [True, False]
    assert decided_by(mosaic, 1) == dict(enumerate(mosaic.candidate["picture"]["owners"]))
    spoiled = len(quarters(wrong_cells(mosaic, 0)))
    says = counted(mosaic, "01")
    assert f"{4 - spoiled} of 4 quarters right" in says
    assert "all right, 4 of 4 by the one trained on the task" in says


def test_a_mosaic_is_a_task_of_larger_grids(mosaic: Recording) -> None:
    picture = mosaic.candidate["picture"]
    pairs = [*picture["task"]["train"], *picture["task"]["test"]]
    assert len(pairs) == 4
    assert {len(rows) for pair in pairs for rows in pair.values()} == {20} == {picture["side"]}
    assert picture["task"]["test"][0]["output"] == picture["right"]


def test_the_text_holds_at_once(text: Recording) -> None:
    assert text.held
    assert text.candidate["id"] == next(iter(PASSAGES))


def test_each_errs_where_the_other_is_at_home(text: Recording) -> None:
    owners = text.candidate["picture"]["owners"]
    assert [{owners[cell] for cell in wrong_cells(text, run)} for run in (0, 1, 2)] == [{1}, {0}, set()]
    of = [len(wrong_cells(text, run)) for run in (0, 1)]
    assert counted(text, "00") == (
        f"Alone, each errs. Of the {of[0]} wrong characters of prose, {of[0]} are in code. "
        f"Of the {of[1]} of code, {of[1]} are in prose."
    )


def test_only_hidden_characters_are_filled(text: Recording) -> None:
    picture = text.candidate["picture"]
    hidden = [cell for cell, value in enumerate(picture["start"]) if value == picture["mask"]]
    assert letters(picture["right"][0]) == PASSAGES["mean"]
    assert 0.1 < len(hidden) / len(picture["start"]) < 0.2
    for run in text.runs:
        assert sorted(cell for step in run[1:-1] for cell in step["revealed"]) == hidden
        assert run[0]["masked"] == len(hidden)


def test_weights_say_how_much_each_counts(text: Recording) -> None:
    for step in text.runs[2][1:-1]:
        for of_cell in zip(*step["weights"], strict=True):
            assert abs(sum(of_cell) - 100) <= 1
    assert all(step["weights"] is None for step in text.runs[0][1:-1])


def test_the_likeliest_values_come_with_their_shares(text: Recording) -> None:
    for step in text.runs[2][1:-1]:
        for voice in (step["composed"], *step["experts"]):
            assert len(voice["likeliest"]) == len(step["cells"])
            for best, found in zip(voice["best"], voice["likeliest"], strict=True):
                shares = [share for _, share in found]
                assert found[0][0] == best or shares[0] == dict(found).get(best)
                assert len(found) <= LIKELIEST
                assert shares == sorted(shares, reverse=True)
                assert 0 < sum(shares) <= 1_002


def test_texts_are_short_enough_for_the_experts_and_for_a_phone() -> None:
    for passage in PASSAGES.values():
        assert len(passage) <= 256
        assert max(map(len, passage.splitlines())) <= 43
        assert set(passage) <= set(LETTERS)


def test_a_caption_counts_only_what_the_page_can_count() -> None:
    known = set(re.findall(r"^  (\w+)(?:: |\()", (STATIC / "js" / "counts.js").read_text(), re.MULTILINE))
    for one in STORIES:
        for says in one.captions.values():
            for what, run, _ in re.findall(r"\{(\w+) (\d)( of \d)?\}", says):
                assert what in known
                assert int(run) < len(one.runs)
            assert "{" not in re.sub(r"\{\w+ \d( of \d)?\}", "", says)
