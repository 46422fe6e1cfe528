"""Properties 13 and 14: order, idle steps, and numbers that must not round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from factordiff.composition import confidence, routing
from factordiff.composition.mixture import Mixture
from factordiff.diffusion import schedule
from factordiff.sampling import particles
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from tests import oracle
from tests.toy import (
    CELLS,
    EXPERTS,
    empty,
)
from tests.toy import state as at


def test_13_every_cell_is_revealed_once_and_idle_steps_cost_nothing() -> None:
    for N, T in ((100, 128), (4, 4), (7, 3), (5, 100), (1, 1), (100, 7)):
        quotas = [oracle.quota(N, T, j) for j in range(T)]
        states_ = [
            replace(SamplerState.begin(torch.full((1, N), 9), 9, 1), clock=torch.tensor([j]))
            for j in range(T)
        ]
        assert [int(ByConfidence(T).quota(state)) for state in states_] == quotas
        assert sum(quotas) == N
    assert [oracle.quota(100, 128, j) for j in range(128)].count(0) == 28

    few, many = (sample(EXPERTS, Mixture(), empty(50), reveal=ByConfidence(T), seed=13) for T in (CELLS, 128))
    assert torch.equal(few.x_0, many.x_0)  # 124 idle steps more
    assert (many.nominal_passes == 2 * CELLS).all()
    assert (many.executed_passes == 2 * CELLS).all()


def test_13_argmax_makes_all_particles_the_same() -> None:
    drawn = sample(EXPERTS, Mixture(), empty(20), particles=8, temperature=0.0)
    assert (drawn.particles == drawn.particles[:, :1]).all()
    drawn = sample(EXPERTS, Mixture(), empty(20), particles=8, temperature=1.0)
    assert not (drawn.particles == drawn.particles[:, :1]).all()


def test_14_margins_tell_confident_experts_apart() -> None:
    gaps = torch.tensor([20.0, 24.0])
    logits = torch.zeros(2, 1, 1, 10)
    logits[:, 0, 0, 0] = gaps
    log_p = torch.log_softmax(logits, dim=-1)  # float32, as a network says it
    doubt = confidence.log_doubt(log_p)[:, 0, 0]
    assert doubt.dtype == torch.float64
    for found, row in zip(doubt.tolist(), logits[:, 0, 0], strict=True):
        assert found == pytest.approx(oracle.exact_log_doubt(row.tolist()), rel=1e-6)
    start = at(torch.full((1, 1), 10), 10, torch.zeros(2, 1, dtype=torch.float64))
    assert routing.Routing()(log_p, start).routing == 1  # not a tie


def test_14_systematic_resampling() -> None:
    even = torch.full((9, 8), 1 / 8, dtype=torch.float64)
    offsets = torch.linspace(0, 0.999, 9, dtype=torch.float64)
    assert torch.equal(particles.systematic(even, offsets), torch.arange(8).expand(9, -1))
    weights = torch.softmax(2 * torch.from_numpy(np.random.default_rng(14).standard_normal((500, 8))), dim=-1)
    offsets = torch.from_numpy(np.random.default_rng(15).random(500))
    copies = torch.nn.functional.one_hot(particles.systematic(weights, offsets), 8).sum(1)
    assert (copies - 8 * weights).abs().max() < 1
    assert (copies.sum(-1) == 8).all()
    # the largest uniform there is falls on the last particle with weight, not off the end
    largest = torch.full((500,), 1 - 2.0**-53, dtype=torch.float64)
    assert int(particles.systematic(weights, largest).max()) < 8


def test_14_schedule_identities() -> None:
    t = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    assert torch.allclose(-torch.expm1(-schedule.sigma(t)), t, rtol=1e-12)
    slope = 1 / (1 - t)
    assert torch.allclose(schedule.loss_weight(t), slope / (schedule.sigma(t).exp() - 1), rtol=1e-12)
