"""Experts scored on an item's demonstrations: each is hidden once, the others are shown, and it is counted."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff import Condition, Vocabulary, compose
from factordiff.composition.evidence import Evidence
from factordiff.errors import InvalidInput
from factordiff.sampling.demonstration_evidence import demonstration_evidence

VALUES, CELLS = 3, 12


class Copies:
    """Says that an answer is its query moved on by `shift`, with probability 0.9, and notes what it was told."""

    def __init__(self, shift: int) -> None:
        self.shift = shift
        self.told: list[Any] = []
        self.seen: list[Tensor] = []

    vocabulary = Vocabulary(VALUES)

    def encode(self, condition: Any) -> Tensor:
        self.told.append(condition)
        return condition.query

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        self.seen.append(x_t)
        said = (encoded + self.shift) % VALUES
        table = torch.full((*x_t.shape, VALUES), 0.05, dtype=torch.float64)
        return table.scatter(-1, said[..., None], 0.9).log()


def shown(shift: list[int], frames: list[int]) -> Condition:
    """Items whose demonstrations move every value on by the item's own number."""
    inputs = torch.arange(len(shift) * 3 * CELLS).view(len(shift), 3, CELLS) % VALUES
    present = torch.arange(3) < torch.tensor(frames)[:, None]
    outputs = (inputs + torch.tensor(shift)[:, None, None]) % VALUES
    there = present[:, :, None]
    return Condition(inputs[:, 0] * 0, inputs * there, outputs * there, present)


def test_the_score_is_the_likelihood_of_the_hidden_answers() -> None:
    experts = [Copies(0), Copies(1)]
    scores, passes = demonstration_evidence(experts, shown([0, 1], [3, 2]), rates=[1.0])
    right, wrong = torch.tensor([0.9, 0.05], dtype=torch.float64).log() * CELLS
    expected = torch.stack([torch.stack([3 * right, 2 * wrong]), torch.stack([3 * wrong, 2 * right])])
    assert torch.allclose(scores, expected, atol=1e-12)
    assert passes.tolist() == [2 * 3, 2 * 2]  # two experts, one pass for each demonstration


def test_who_is_asked_does_not_see_the_answer() -> None:
    expert = Copies(0)
    condition = shown([1], [3])
    demonstration_evidence([expert, expert], condition)
    for number, told in enumerate(expert.told[::2]):
        assert torch.equal(told.query, condition.context_inputs[:, number])
        assert told.present.sum() == 2
        assert not told.present[0, number]
        assert (told.context_outputs[0, number] == 0).all()


def test_an_answer_is_scored_where_it_is_hidden_and_every_rate_counts_alike() -> None:
    expert, condition = Copies(0), shown([0], [3])
    scores, _ = demonstration_evidence([expert], condition)
    right = math.log(0.9)
    expected, half_hidden = 0.0, []
    for number in range(3):
        answer = condition.context_outputs[0, number]
        everything, half = (x_t[0] for x_t in expert.seen[2 * number : 2 * number + 2])
        assert (everything == VALUES).all()
        hidden = half == VALUES
        assert torch.equal(half[~hidden], answer[~hidden])
        half_hidden.append(int(hidden.sum()))
        expected += (CELLS * right + int(hidden.sum()) * right / 0.5) / 2
    assert float(scores[0, 0]) == pytest.approx(expected)
    assert 0 < sum(half_hidden) < 3 * CELLS
    assert len(set(half_hidden)) > 1  # drawn anew for each demonstration


def test_it_reaches_the_composition_through_the_front_door_and_is_counted() -> None:
    team = compose([Copies(0), Copies(1)], "evidence", demonstration_evidence="all")
    plain = compose([Copies(0), Copies(1)], "evidence")
    condition, blank = shown([0, 1], [3, 3]), torch.full((2, CELLS), VALUES)
    drawn = team.sample(blank, condition)
    assert drawn.x_0.tolist() == [[0] * CELLS, [1] * CELLS]  # queries are all zero: each item's own rule
    extra = drawn.executed_passes - plain.sample(blank, condition).executed_passes
    assert extra.tolist() == [2 * 2 * 3] * 2  # two experts, two rates, three demonstrations


def test_one_demonstration_says_nothing() -> None:
    scores, passes = demonstration_evidence([Copies(0), Copies(1)], shown([0, 0], [1, 0]))
    assert (scores == 0).all()
    assert passes.tolist() == [0, 0]


def test_what_has_no_demonstrations_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"expected one with demonstrations .* got Tensor"):
        demonstration_evidence([Copies(0)], torch.zeros(2, 3))
    with pytest.raises(InvalidInput, match="of_items: expected"):
        Evidence(of_items=torch.full((2, 3), torch.nan))
