"""Properties 1 and 2: the weight of a time, and how the three losses relate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.diffusion import objectives
from tests import enumeration
from tests.enumeration import partial_states
from tests.toy import (
    CELLS,
    EXPERTS,
    MASK,
    P_1,
    ROUNDING,
    log_probs,
)


def expected_loss(nodes: int) -> float:
    """E over t, x_0 and the masking pattern of the loss of expert 1, all enumerated; t by Gauss-Legendre."""
    rows = [
        (x, clean) for x in partial_states(CELLS, MASK) for clean in enumeration.clean_states(CELLS, MASK)
    ]
    rows = [(x, clean) for x, clean in rows if enumeration.agrees(x, clean, MASK)]
    x_t, x_0 = (torch.tensor(column) for column in zip(*rows, strict=True))
    hidden = (x_t == MASK).sum(-1).double()
    chance = torch.from_numpy(P_1)[tuple(x_0.T)]
    log_p = EXPERTS[0].log_probs(x_t)
    total = 0.0
    for node, weight in zip(*np.polynomial.legendre.leggauss(nodes), strict=True):
        t = float(node + 1) / 2
        mass = chance * t**hidden * (1 - t) ** (CELLS - hidden)

        def weighted(log_p: Tensor, x_0: Tensor, mass: Tensor = mass) -> Tensor:
            return mass[:, None] * objectives.full(log_p, x_0)

        times = torch.full((len(rows),), t, dtype=torch.float64)
        mean = objectives.diffusion_loss(weighted, log_p, x_0, x_t, times)
        total += weight / 2 * float(mean) * x_0.numel()
    return total


def test_01_the_loss_of_an_exact_expert_is_the_entropy() -> None:
    assert enumeration.entropy(P_1) == pytest.approx(3.061835, abs=5e-7)
    assert expected_loss(8) == pytest.approx(enumeration.entropy(P_1), abs=1e-10)
    assert expected_loss(16) == pytest.approx(
        expected_loss(8), abs=1e-10
    )  # the main text's weight grows here


def test_02_full_is_occupancy_and_color_given_foreground() -> None:
    log_p = log_probs(0, 7, 5, 10)
    x_0 = torch.from_numpy(np.random.default_rng(0).integers(10, size=(7, 5)))
    y = (x_0 > 0).double()
    log_fg = log_p[..., 1:].logsumexp(-1)
    color_given_fg = log_fg - log_p.gather(-1, x_0.unsqueeze(-1)).squeeze(-1)
    full, occupancy, color = (objectives.objective(name)(log_p, x_0) for name in objectives.OBJECTIVES)
    assert (full - occupancy - y * color_given_fg).abs().max() < ROUNDING
    assert (color - y * (color_given_fg - log_fg)).abs().max() < ROUNDING
