"""Products against their loops: forbidden values, exponents of zero, experts that share nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition.composition import Composed
from factordiff.composition.product import GeometricMean, Product, power, product
from tests import oracle
from tests.toy import Drawn, close, drawn, seeds


def assert_is_product(composed: Composed, case: Drawn, beta: list[float]) -> None:
    for row, cell in case.hidden:
        r, S = oracle.product(case.p[:, row, cell], beta)
        assert composed.log_z is not None
        assert close(composed.log_probs[row, cell].exp(), r, atol=1e-9)
        assert float(composed.log_z[row, cell].exp()) == pytest.approx(S, rel=1e-9, abs=1e-300)


@given(drawn(), seeds, st.sampled_from([0.5, 1.0, 3.0]))
def test_product_is_the_loop(case: Drawn, seed: int, scale: float) -> None:
    beta = (scale * np.random.default_rng(seed).random(len(case.p))).tolist()
    assert_is_product(Product(beta)(case.log_p, case.state), case, beta)


@given(drawn())
def test_defaults_are_one_and_one_over_the_experts(case: Drawn) -> None:
    experts = len(case.p)
    assert_is_product(Product()(case.log_p, case.state), case, [1.0] * experts)
    assert_is_product(GeometricMean()(case.log_p, case.state), case, [1.0 / experts] * experts)


@given(drawn(experts=(2, 3)))
def test_an_exponent_of_zero_forbids_nothing(case: Drawn) -> None:
    beta = torch.tensor([1.0] + [0.0] * (len(case.p) - 1), dtype=torch.float64)
    assert torch.equal(power(case.log_p, beta).sum(0), case.log_p[0])
    assert torch.allclose(product(case.log_p, beta).log_probs, case.log_p[0], atol=1e-12)


def test_experts_that_share_no_value_leave_it_open() -> None:
    never = -math.inf
    log_p = torch.tensor([[0.0, never, never], [never, 0.0, never]], dtype=torch.float64).view(2, 1, 1, 3)
    composed = product(log_p, torch.ones(2, dtype=torch.float64))
    assert composed.log_z is not None
    assert composed.log_z.item() == never
    assert composed.log_probs.exp().flatten().tolist() == pytest.approx([1 / 3] * 3)


@given(drawn(experts=(2, 3)), seeds)
def test_one_exponent_per_expert_row_and_cell(case: Drawn, seed: int) -> None:
    beta = torch.from_numpy(np.random.default_rng(seed).random(case.p.shape[:3]))
    composed = product(case.log_p, beta)
    for row, cell in case.hidden:
        r, _ = oracle.product(case.p[:, row, cell], beta[:, row, cell].tolist())
        assert close(composed.log_probs[row, cell].exp(), r, atol=1e-9)
