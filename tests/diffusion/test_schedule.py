"""The log-linear schedule against its formulas."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.diffusion import schedule

times = st.floats(1e-3, 1 - 1e-3)


def at(t: float) -> torch.Tensor:
    return torch.tensor(t, dtype=torch.float64)


@given(times)
def test_levels(t: float) -> None:
    assert float(schedule.alpha(at(t))) == pytest.approx(1 - t)
    assert float(schedule.sigma(at(t))) == pytest.approx(-math.log(1 - t))


@given(times)
def test_the_weight_is_the_derivative_over_the_odds(t: float) -> None:
    h = 1e-6 * min(t, 1 - t)
    slope = float(schedule.sigma(at(t + h)) - schedule.sigma(at(t - h))) / (2 * h)
    assert float(schedule.loss_weight(at(t))) == pytest.approx(slope / (1 / (1 - t) - 1), rel=1e-4)
    assert float(schedule.loss_weight(at(t))) == pytest.approx(1 / t)


@given(times, st.floats(0, 1))
def test_reveals_between_two_times(t: float, share: float) -> None:
    s = share * t
    assert float(schedule.reveal_probability(at(t), at(s))) == pytest.approx((t - s) / t, abs=1e-12)


def test_the_ends() -> None:
    assert schedule.alpha(at(0)) == 1
    assert schedule.alpha(at(1)) == 0
    assert schedule.sigma(at(1)) == math.inf
    assert schedule.reveal_probability(at(0.4), at(0)) == 1
