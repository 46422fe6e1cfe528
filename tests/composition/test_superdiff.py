"""SuperDiff's responsibilities and balances against their loops, and where experts rule things out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition import superdiff
from factordiff.composition.mixture import Mixture
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from tests import oracle
from tests.toy import Drawn, close, drawn, seeds, state


@given(drawn(), seeds, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_responsibilities_are_the_loop(case: Drawn, seed: int, temperature: float) -> None:
    random = np.random.default_rng(seed)
    experts, rows = case.ell.shape
    weights, bias = random.random(experts) + 0.01, random.standard_normal(experts)
    composed = SuperDiff(weights.tolist(), temperature, bias.tolist())(case.log_p, case.state)
    assert composed.log_kappa is not None
    for row in range(rows):
        kappa = oracle.superdiff_kappa(case.ell[:, row], temperature, bias, weights / weights.sum())
        assert close(composed.log_kappa[:, row].exp(), kappa)
    for row, cell in case.hidden:
        kappa = oracle.superdiff_kappa(case.ell[:, row], temperature, bias, weights / weights.sum())
        assert close(composed.log_probs[row, cell].exp(), oracle.mixture(case.p[:, row, cell], kappa))


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_where_every_expert_has_ruled_the_state_out_the_prior_speaks(temperature: float) -> None:
    nothing = torch.full((2, 3), -torch.inf, dtype=torch.float64)
    log_p = torch.log_softmax(torch.zeros(2, 3, 4, 5, dtype=torch.float64), dim=-1)
    composed = SuperDiff([1.0, 3.0], temperature)(log_p, state(torch.full((3, 4), 5), 5, nothing))
    assert composed.log_kappa is not None
    assert close(composed.log_kappa[:, 0].exp(), [0.25, 0.75])


def test_at_temperature_0_nobody_is_ruled_out() -> None:
    """It is the plain mixture, whatever the path has brought: `remembers` says so."""
    ruled_out = torch.tensor([[-torch.inf, -1.0], [-2.0, -torch.inf]], dtype=torch.float64)
    log_p = torch.log_softmax(torch.arange(40.0, dtype=torch.float64).sin().view(2, 2, 2, 5), dim=-1)
    here = state(torch.full((2, 2), 5), 5, ruled_out)
    composed = SuperDiff([1.0, 3.0], 0.0, [2.0, 0.0])(log_p, here)
    assert not SuperDiff(temperature=0.0).remembers
    assert torch.allclose(composed.log_probs, Mixture([1.0, 3.0])(log_p, here).log_probs)


@given(drawn(experts=(2, 2), values=(2, 5), forbid=False))
def test_the_linear_balance_is_the_formula(case: Drawn) -> None:
    masked = case.state.masked
    kappa = superdiff.equalising_mixture(case.log_p, masked, case.ell)
    assert close(kappa.sum(0), np.ones(kappa.shape[1]))
    for row in range(kappa.shape[1]):
        p = case.p[:, row, masked[row].numpy()]
        if (p > 1e-7).all():  # otherwise cancellation inside the divergences shows
            assert float(kappa[0, row]) == pytest.approx(
                oracle.and_linear(p, case.ell[:, row].tolist()), abs=1e-6
            )


@given(drawn(experts=(1, 3), values=(2, 4), forbid=False))
def test_the_geometric_balance_is_the_lowest_point_of_the_simplex(case: Drawn) -> None:
    masked = case.state.masked
    kappa = superdiff.equalising_exponents(case.log_p, masked, case.ell)
    assert close(kappa.sum(0), np.ones(kappa.shape[1]), atol=1e-9)
    assert float(kappa.min()) >= 0
    slopes = case.ell + superdiff.increments(case.log_p, masked, kappa)
    for row in range(kappa.shape[1]):
        p, ell = case.p[:, row, masked[row].numpy()], case.ell[:, row].tolist()
        if not (p > 1e-200).all():
            continue
        found = oracle.and_objective(p, ell, kappa[:, row].numpy())
        assert found <= oracle.and_objective(p, ell, oracle.and_geometric(p, ell)) + 1e-9
        # KKT: equal slopes where there is weight, no lower slope where there is none
        taking_part = kappa[:, row] > 1e-9
        level = slopes[taking_part, row].max()
        assert float(slopes[:, row].min()) >= float(level) - 1e-6


@given(drawn(experts=(2, 3), values=(2, 4)))
def test_increments_are_the_loop(case: Drawn) -> None:
    log_p = case.log_p.clamp(min=-20)
    kappa = torch.full(case.ell.shape, 1 / len(log_p), dtype=torch.float64)
    found = superdiff.increments(log_p, case.state.masked, kappa)
    expected = torch.zeros_like(found)
    for row, cell in case.hidden:
        p = log_p[:, row, cell].exp().numpy()
        r, _ = oracle.product(p, kappa[:, row].tolist())
        for expert in range(len(p)):
            expected[expert, row] += oracle.expected_increment(np.array(r), p[expert])
    assert torch.allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("form", ["linear", "geometric"])
def test_a_hard_zero_leaves_the_balance_finite(form: str) -> None:
    never = -math.inf
    log_p = torch.tensor(
        [[0.0, never, never], [-1.0, never, math.log(1 - math.exp(-1.0))]], dtype=torch.float64
    )
    for ell in ([0.0, 0.0], [never, 0.0], [0.0, never], [never, never]):
        here = state(torch.tensor([[3]]), 3, torch.tensor(ell, dtype=torch.float64)[:, None])
        composed = SuperDiffAnd(form)(log_p.view(2, 1, 1, 3), here)
        assert composed.log_probs.exp().sum().item() == pytest.approx(1.0)
        assert composed.log_probs[0, 0, 1].item() == never


@pytest.mark.parametrize("form", ["linear", "geometric"])
def test_the_expert_that_lags_behind_gets_more_weight(form: str) -> None:
    log_p = torch.log_softmax(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).double(), dim=-1).view(
        2, 1, 1, 3
    )
    ell = torch.tensor([[-0.1], [0.0]], dtype=torch.float64)
    carried, alone = (
        SuperDiffAnd(form, carry)(log_p, state(torch.tensor([[3]]), 3, ell)) for carry in (True, False)
    )
    assert float(carried.log_probs[0, 0, 0]) > float(alone.log_probs[0, 0, 0])
    assert float(alone.log_probs[0, 0, 0]) == pytest.approx(float(alone.log_probs[0, 0, 1]))
