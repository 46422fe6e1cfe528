"""Confidence against correctness, for an expert whose every number is known."""

from __future__ import annotations

import math

import pytest
import torch

from factordiff.arc.dataset import Dataset
from factordiff.evaluation.calibration import TIMES, confidence_curve
from factordiff.vocabulary import Vocabulary


class SureOfOne:
    """Says 1 with probability 0.91 everywhere, and every other value with 0.01."""

    vocabulary = Vocabulary(10)

    def encode(self, condition):
        return None

    def log_probs(self, x_t, encoded):
        probabilities = torch.full((*x_t.shape, 10), 0.01)
        probabilities[..., 1] = 0.91
        return probabilities.log()


def test_margins_shares_and_vetoes_by_hand():
    queries = Dataset.load().evaluation("validation", 120)
    found = confidence_curve(SureOfOne(), queries, 120, batch=50)
    x_0 = queries.x_0
    (background, foreground), (_, right) = found["cells"], found["right"]
    # All hidden once at time 1, and a quarter, a half and three quarters of the cells before.
    for count, cells in ((sum(background), x_0 == 0), (sum(foreground), x_0 > 0)):
        assert count == pytest.approx(sum(TIMES) * int(cells.sum()), rel=0.05)
    assert background[9] == sum(background), "a margin of 0.9 everywhere"
    assert sum(found["margin"][1]) / sum(foreground) == pytest.approx(0.9)
    assert sum(found["right"][0]) == 0
    share_of_ones = float((x_0 == 1).sum() / (x_0 > 0).sum())
    assert sum(right) / sum(foreground) == pytest.approx(share_of_ones, rel=0.1)
    assert found["largest_color_share"] == pytest.approx([0.91 / 0.99] * 3)
    # Background is forbidden; at foreground the tenth sees a forbidden color, unless nearly all are 1.
    assert found["truth"][0] == pytest.approx([math.log(0.01)] * 3)
    assert found["truth"][1][0] == pytest.approx(math.log(0.01))
