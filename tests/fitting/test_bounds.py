"""The best single numbers, against every number that could matter; and the cycle that no number solves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition.confidence import log_doubt
from factordiff.fitting import bounds
from factordiff.fitting.bounds import best_numbers, best_temperatures, leads, share_right
from factordiff.fitting.predictions import predict
from tests.fitting.worlds import cyclic


def said(experts: int, cells: int, values: int, seed: int) -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(seed)
    log_probs = torch.log_softmax(torch.from_numpy(2 * random.standard_normal((experts, cells, values))), -1)
    return log_probs, torch.from_numpy(random.integers(0, values, cells))


def every_threshold(lead: Tensor) -> float:
    """The best share over all places between thresholds of the first number, by trying each."""
    thresholds = (-lead[1] / lead[0]).flatten()
    thresholds = torch.cat([torch.tensor([0.0]).double(), thresholds[thresholds > 0].sort().values])
    middles = torch.cat([(thresholds[1:] + thresholds[:-1]) / 2, thresholds[-1:] * 2 + 1])
    return max(share_right(lead, torch.tensor([float(number), 1.0]).double()) for number in middles)


@pytest.mark.parametrize("seed", range(8))
def test_two_experts_the_sweep_is_exact(seed: int) -> None:
    log_probs, truth = said(2, 40, 4, seed)
    for values in (log_probs, log_probs.exp()):
        lead = leads(values, truth)
        found = bounds.best_along(lead, torch.ones(2, dtype=torch.float64), 0)
        assert found.right == pytest.approx(every_threshold(lead), abs=1e-12)
        assert share_right(lead, torch.tensor(found.numbers).double()) == found.right
        best = best_numbers(lead)
        alone = [share_right(lead, torch.eye(2).double()[m]) for m in range(2)]
        assert best.right == max(found.right, *alone)


def test_leads_are_the_loop() -> None:
    log_probs, truth = said(3, 5, 4, 0)
    lead = leads(log_probs, truth)
    for m, cell in np.ndindex(3, 5):
        wrong = [v for v in range(4) if v != truth[cell]]
        expected = sorted(float(log_probs[m, cell, truth[cell]] - log_probs[m, cell, v]) for v in wrong)
        assert sorted(lead[m, cell].tolist()) == pytest.approx(expected)
        right = bool((lead[m, cell] > 0).all())
        assert right == (int(log_probs[m, cell].argmax()) == int(truth[cell]))


@pytest.mark.parametrize("seed", range(4))
def test_three_experts_are_never_below_any_pair_or_the_even_numbers(seed: int) -> None:
    log_probs, truth = said(3, 60, 4, seed)
    lead = leads(log_probs, truth)
    best = best_numbers(lead)
    assert best.right == share_right(lead, torch.tensor(best.numbers).double())
    ones = torch.ones(3, dtype=torch.float64)
    grid = [torch.tensor(n).double() for n in np.random.default_rng(seed).random((200, 3))]
    assert best.right >= max(share_right(lead, numbers) for numbers in (ones, *torch.eye(3).double()))
    assert best.right >= max(share_right(lead, numbers) for numbers in grid) - 0.05


def test_in_the_cycle_two_of_three_are_the_most() -> None:
    experts, data = cyclic()
    predictions = predict(experts, data, rates=[1.0])
    log_probs, truth = (
        predictions.log_probs[:, predictions.asked].double(),
        predictions.x_0[predictions.asked],
    )
    for values in (log_probs, log_probs.exp()):
        assert best_numbers(leads(values, truth)).right == pytest.approx(2 / 3)
    right = log_probs.argmax(-1) == truth
    assert not right.gather(0, log_doubt(log_probs).argmin(0)[None]).any()
    assert best_temperatures(log_probs, right).right <= 2 / 3 + 1e-9
    assert right.any(0).all()
