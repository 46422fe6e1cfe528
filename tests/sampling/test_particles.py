"""Weights, effective size and resampling against loops and exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.sampling.particles import (
    draw_one,
    effective_size,
    highest_target,
    log_target,
    normalised,
    systematic,
)
from tests import oracle
from tests.toy import close, seeds

LAST = 1 - 2.0**-53


def log_weights(seed: int, items: int, count: int, dead: float) -> torch.Tensor:
    random = np.random.default_rng(seed)
    log_w = 3 * random.standard_normal((items, count))
    return torch.from_numpy(np.where(random.random((items, count)) < dead, -np.inf, log_w))


@given(seeds, st.integers(1, 3), st.integers(1, 9), st.sampled_from([0.0, 0.5, 1.0]))
def test_weights_and_effective_size_are_the_loop(seed: int, items: int, count: int, dead: float) -> None:
    log_w = log_weights(seed, items, count, dead)
    found, size = normalised(log_w), effective_size(log_w)
    for item in range(items):
        raised = [math.exp(w) for w in log_w[item].tolist()]
        if sum(raised) == 0:
            raised = [1.0] * count  # all dead: nothing is known, all are equal
        expected = [w / sum(raised) for w in raised]
        assert close(found[item], expected)
        assert float(size[item]) == pytest.approx(1 / sum(w * w for w in expected))


@given(seeds, st.integers(1, 12), st.sampled_from([0.0, 0.4]), st.floats(1e-6, 1 - 1e-6))
def test_resampling_is_the_walk_along_the_weights(seed: int, count: int, dead: float, u: float) -> None:
    log_w = log_weights(seed, 2, count, dead)
    weights = normalised(log_w)
    found = systematic(weights, torch.full((2,), u, dtype=torch.float64))
    for item in range(2):
        expected = oracle.systematic(weights[item].tolist(), u)
        for k in range(count):
            if found[item, k] != expected[k]:  # only where a position falls on a border
                reached = weights[item].cumsum(0)
                border = (reached - (k + u) / count).abs().min()
                assert float(border) < 1e-12
        copies = torch.bincount(found[item], minlength=count)
        assert (copies - count * weights[item]).abs().max() < 1 + 1e-9
        assert (copies[weights[item] == 0] == 0).all()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 10, 100])
@pytest.mark.parametrize("u", [0.0, 0.5, LAST])
def test_dead_particles_leave_no_descendants_and_nobody_falls_off_the_end(count: int, u: float) -> None:
    offsets = torch.tensor([u], dtype=torch.float64)
    for alive in range(count):  # every place of the one particle that lives
        weights = torch.zeros(1, count, dtype=torch.float64)
        weights[0, alive] = 1.0
        assert (systematic(weights, offsets) == alive).all()
    random = np.random.default_rng(count)
    for _ in range(20):
        log_w = torch.from_numpy(random.standard_normal((1, count)))
        log_w[0, count // 2 + 1 :] = -math.inf  # the last ones are dead
        weights = normalised(log_w)
        ancestors = systematic(weights, offsets)
        assert (weights.gather(1, ancestors) > 0).all()
        assert (ancestors[:, 1:] >= ancestors[:, :-1]).all()


@given(seeds, st.integers(1, 4), st.integers(1, 5))
def test_targets_are_sums_and_zero_exponents_forget(seed: int, experts: int, count: int) -> None:
    random = np.random.default_rng(seed)
    ell = -3 * random.random((experts, 2, count))
    beta = random.random(experts)
    beta[0], ell[0, 0, 0] = 0.0, -np.inf
    found = log_target(torch.from_numpy(ell), torch.from_numpy(beta))
    for item, particle in np.ndindex(2, count):
        expected = sum(b * e for b, e in zip(beta, ell[:, item, particle], strict=True) if b > 0)
        assert float(found[item, particle]) == pytest.approx(expected, abs=1e-12)
    best = highest_target(torch.from_numpy(ell), torch.from_numpy(beta))
    assert best.tolist() == found.argmax(-1).tolist()


def test_one_particle_is_drawn_by_weight() -> None:
    log_w = torch.log(torch.tensor([[0.1, 0.0, 0.6, 0.3]], dtype=torch.float64)) - 700
    count = 20_000
    u = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    drawn = draw_one(log_w.expand(count, -1), u)
    assert torch.bincount(drawn, minlength=4).tolist() == [2000, 0, 12_000, 6000]
    all_dead = torch.full((4, 4), -torch.inf, dtype=torch.float64)
    assert draw_one(all_dead, torch.tensor([0.1, 0.3, 0.6, 0.9]).double()).tolist() == [0, 1, 2, 3]
