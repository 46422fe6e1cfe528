"""Properties 5, 6 and 7: weighted particles are exact, whatever proposes them."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition import emission, superdiff
from factordiff.composition.composition import Composed, Composition
from factordiff.composition.correctors import Corrected, feynman_kac, rne
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import Product, power, product
from factordiff.composition.single import Single
from factordiff.diffusion import process
from factordiff.sampling import particles
from factordiff.sampling.reveal import RevealRule
from factordiff.state import SamplerState
from factordiff.toy.law import exact_law
from tests import oracle
from tests.enumeration import tv
from tests.toy import (
    CELLS,
    EXPERTS,
    MASK,
    P_1,
    P_2,
    ROUNDING,
    STATES,
    law_of,
    normalised,
    reverse_chain,
)
from tests.toy import state as at

BETAS = {(1.0, 1.0): 0.254, (0.5, 0.5): 0.151, (2.0, 1.0): 0.198}  # and how far off the product alone is


class InOrder(RevealRule):
    """One cell after another, in a given order."""

    def __init__(self, order: tuple[int, ...]) -> None:
        self.order = torch.tensor(order)

    def candidates(self, state: SamplerState) -> Tensor:
        return state.masked & (torch.arange(CELLS) == self.order[state.clock][:, None])

    def choose(self, log_doubt: Tensor, candidates: Tensor, state: SamplerState) -> Tensor:
        return candidates


def assert_weighted_law(composition: Corrected, beta: tuple[float, float], **options: object) -> None:
    law = exact_law(EXPERTS, composition, CELLS, **options)
    target = P_1 ** beta[0] * P_2 ** beta[1]
    assert tv(law.distribution(weighted=True).numpy(), normalised(target)) < ROUNDING
    # E[w] is the normaliser itself, not only up to a constant
    assert float((law.log_prob + law.log_w).exp().sum()) == pytest.approx(target.sum(), abs=ROUNDING)


@pytest.mark.parametrize("beta", BETAS)
def test_05_feynman_kac_weights_are_exact_and_the_product_alone_is_not(beta: tuple[float, float]) -> None:
    assert_weighted_law(feynman_kac(beta), beta)
    target = normalised(P_1 ** beta[0] * P_2 ** beta[1])
    assert tv(law_of(Product(beta)), target) == pytest.approx(BETAS[beta], abs=5e-4)
    assert_weighted_law(feynman_kac(beta), beta, temperature=0.7)  # sum of log S is wrong here (.202)


def test_05_exponents_are_one_over_the_experts_unless_given() -> None:
    assert_weighted_law(feynman_kac(), (0.5, 0.5))
    assert_weighted_law(rne(), (0.5, 0.5))


def test_05_any_order_that_does_not_look_at_the_values_is_exact() -> None:
    for order in permutations(range(CELLS)):
        assert_weighted_law(feynman_kac((1.0, 1.0)), (1.0, 1.0), reveal=InOrder(order))


def test_05_parallel_reveals_leave_a_gap_of_one_over_T() -> None:
    said = torch.stack([expert.log_probs(STATES) for expert in EXPERTS])
    raw = power(said, torch.ones(2, dtype=torch.float64)).sum(0)
    target = normalised(P_1 * P_2)
    gaps = [tv(normalised(reverse_chain(raw, T)), target) for T in (4, 16, 64, 128)]
    assert gaps == pytest.approx([0.281, 0.094, 0.026, 0.0131], rel=0.01)
    unweighted = product(said, torch.ones(2, dtype=torch.float64)).log_probs
    assert tv(reverse_chain(unweighted, 128), target) == pytest.approx(0.223, abs=0.003)


class Even(Composition):
    """The proposal that knows nothing."""

    def __call__(self, log_probs: Tensor, state: SamplerState) -> Composed:
        return Composed(torch.full_like(log_probs[0], -math.log(log_probs.shape[-1])))


PROPOSALS = [None, Single(0), Even(), superdiff.SuperDiff(), superdiff.SuperDiffAnd()]


@pytest.mark.parametrize("proposal", PROPOSALS, ids=lambda proposal: type(proposal).__name__)
def test_06_rne_is_exact_under_any_proposal(proposal: Composition | None) -> None:
    for beta in BETAS:
        assert_weighted_law(rne(beta, proposal), beta)


def log_count(x: Tensor, t: float) -> float:
    """The log of alpha_t^|U| (1 - alpha_t)^|K|."""
    kept = int((x == MASK).sum())
    return (CELLS - kept) * math.log(1 - t) + kept * math.log(t)


def test_06_the_token_formula_is_the_literal_kernel_ratio() -> None:
    random = np.random.default_rng(6)
    beta = torch.tensor([1.3, 0.4], dtype=torch.float64)
    for _ in range(300):
        t = float(random.uniform(0.1, 0.99))
        s = float(random.uniform(0.01, 0.99)) * t
        x_t = STATES[random.integers(len(STATES))][None]
        said = torch.stack([expert.log_probs(x_t) for expert in EXPERTS])
        composed = Mixture([0.4, 0.6])(said, at(x_t, MASK, torch.zeros(2, 1, dtype=torch.float64)))
        times = torch.tensor([[t], [s]], dtype=torch.float64)
        spoken = [*said, composed.log_probs]
        kernels = torch.cat([process.reverse_posterior(log_p, x_t, *times) for log_p in spoken])
        x_s = torch.tensor([[random.choice(MASK + 1, p=row / row.sum()) for row in kernels[-1].numpy()]])

        # prod_m [B_m(x_s|x_t) / F(x_t|x_s)]^beta_m * F(x_t|x_s) / B_q(x_s|x_t), every factor as it stands
        backward = kernels[:, torch.arange(CELLS), x_s[0]].log().sum(-1)
        cells = zip(x_s[0].tolist(), x_t[0].tolist(), strict=True)
        forward = sum(math.log(oracle.forward(a, b, s, t, MASK)) for a, b in cells)
        literal = (beta * (backward[:2] - forward)).sum() + forward - backward[2]

        revealed = (x_t == MASK) & (x_s != MASK)
        gain = particles.log_target(emission.log_prob_of_cells(said, x_s, revealed), beta)
        gain = gain - emission.log_drawn(said, composed, x_s, revealed, 1.0)
        count = log_count(x_s, s) - log_count(x_t, t)
        assert float(literal) == pytest.approx(float(gain) + (float(beta.sum()) - 1) * count, abs=1e-11)


@pytest.mark.parametrize("beta", [(0.5, 0.5), (1.0, 1.0), (2.0, 0.7)])
def test_07_the_feynman_kac_generator_moves_the_target(beta: tuple[float, float]) -> None:
    exponents = torch.tensor(beta, dtype=torch.float64)
    B = sum(beta)
    said = torch.stack([expert.log_probs(STATES) for expert in EXPERTS])
    hidden = STATES == MASK
    log_S = product(said, exponents).log_z
    assert log_S is not None
    densities = torch.stack([expert.log_density(STATES) for expert in EXPERTS])
    ell = particles.log_target(densities, exponents)

    def q(t: float) -> Tensor:
        shown, kept = (~hidden).sum(-1).double(), hidden.sum(-1).double()
        return (B * (shown * math.log(1 - t) + kept * math.log(t)) + ell).exp()

    for t in (0.2, 0.5, 0.8):
        rate = B * (1 - t) ** (B - 1) * t**-B
        g = torch.where(hidden, rate * log_S.exp() - B / t, 0.0).sum(-1)
        jump = rate * power(said, exponents).sum(0).exp() * q(t)[:, None, None]
        flow = -torch.where(hidden, jump.sum(-1), 0.0).sum(-1)  # what leaves each state
        strides = torch.tensor([(MASK + 1) ** (CELLS - 1 - i) for i in range(CELLS)])
        for cell in range(CELLS):
            for value in range(MASK):
                here = hidden[:, cell]
                arrives = ((STATES * strides).sum(-1) + (value - MASK) * strides[cell])[here]
                flow = flow.index_add(0, arrives, jump[here, cell, value])
        h = 1e-5
        change = -(q(t + h) - q(t - h)) / (2 * h)  # time runs backwards
        residual = (change - flow - g * q(t)).abs().max() / change.abs().max()
        assert residual < 1e-8
