"""Stretches that occur, against looking for them as text; and experts that know a text by heart or not at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import verbatim as measuring
from benchmarks.verbatim import occurs, restored, share_that_occurs, stretches, verbatim
from factordiff.composition.single import Single
from factordiff.streams import Purpose, integers
from tests.text.tables import Knows, Noise


def cells(count: int, seed: int = 0, values: int = 3) -> np.ndarray:
    return integers(values, seed, Purpose.QUERY, torch.arange(count)).numpy().astype(np.uint8)


@pytest.mark.parametrize("chunk", [7, 1_000])
def test_stretches_are_found_where_they_are(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "CHUNK", chunk)
    corpus, asked = cells(200), cells(300, seed=1)
    found = occurs(stretches(asked, 5), corpus, 5)
    expected = [asked[i : i + 5].tobytes() in corpus.tobytes() for i in range(296)]
    assert found.tolist() == expected
    assert 0 < sum(expected) < 296


def test_what_is_shorter_has_no_stretch() -> None:
    assert len(stretches(cells(4), 5)) == 0
    assert share_that_occurs(torch.from_numpy(cells(60)).long()[None], cells(60), 5) == 1.0


def test_one_that_knows_the_text_by_heart_and_one_that_does_not() -> None:
    corpus = cells(400, values=5)
    train = torch.from_numpy(corpus.astype(np.int64)).unfold(0, 60, 20)[:6]
    held_out = torch.from_numpy(cells(360, seed=3, values=5).astype(np.int64)).view(6, 60)
    heart = verbatim(
        [Knows(torch.from_numpy(corpus.astype(np.int64)), 5)], Single(0), corpus, train, held_out
    )
    assert heart.restored_train == 1.0
    assert heart.restored_held_out == 0.0
    assert heart.held_out == 0.0
    assert restored([Noise(1)], Single(0), train) == 0.0
