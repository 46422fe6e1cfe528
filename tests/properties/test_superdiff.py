"""Properties 9 and 10: SuperDiff keeps count of who said what."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition import superdiff
from factordiff.composition.composition import Composed
from factordiff.composition.mixture import Mixture
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from tests import enumeration, oracle
from tests.enumeration import tv
from tests.toy import (
    CELLS,
    EXPERTS,
    P_1,
    P_2,
    ROUNDING,
    WORLD,
    assert_drawn_from,
    empty,
    law_of,
    log_probs,
)


class Watched(superdiff.SuperDiff):
    """SuperDiff that compares the tracked densities with the exact ones at every step."""

    worst = 0.0

    def __call__(self, log_probs: Tensor, state: SamplerState) -> Composed:
        exact = torch.stack([expert.log_density(state.x_t) for expert in EXPERTS])
        self.worst = max(self.worst, float((state.log_density_of_rows - exact).abs().max()))
        return super().__call__(log_probs, state)


def test_09_superdiff_or_is_the_mixture_of_the_joints() -> None:
    omega = [0.3, 0.7]
    mixture = 0.3 * P_1 + 0.7 * P_2
    assert tv(law_of(superdiff.SuperDiff(omega)), mixture) < ROUNDING
    assert tv(law_of(Mixture(omega)), mixture) == pytest.approx(0.154, abs=5e-4)
    watched = Watched(omega)
    drawn = sample(EXPERTS, watched, empty(5000), reveal=ByConfidence(CELLS), temperature=1.0, seed=9)
    assert watched.worst < 1e-10
    assert_drawn_from(drawn.x_0, mixture)


def test_09_two_cells_a_step_are_spoken_by_one_expert() -> None:
    omega = [0.5, 0.5]
    compose = enumeration.superdiff(omega)

    def kappa(ell: list[float]) -> list[float]:
        return oracle.superdiff_kappa(ell, 1.0, [0.0, 0.0], omega)

    law = law_of(superdiff.SuperDiff(omega), reveal=ByConfidence(2))
    assert tv(law, enumeration.confidence_law(WORLD, compose, 2, kappa=kappa)[0]) < ROUNDING
    # the mixture of what each expert would do alone under the same order
    alone = [
        enumeration.confidence_law(WORLD, compose, 2, kappa=lambda ell, m=m: [float(m == 0), float(m == 1)])[
            0
        ]
        for m in (0, 1)
    ]
    assert tv(law, (alone[0] + alone[1]) / 2) < ROUNDING
    apart = enumeration.confidence_law(WORLD, compose, 2)[0]
    assert tv(apart, (alone[0] + alone[1]) / 2) == pytest.approx(0.120, abs=5e-4)
    drawn = sample(
        EXPERTS, superdiff.SuperDiff(omega), empty(20_000), reveal=ByConfidence(2), temperature=1.0, seed=10
    )
    assert_drawn_from(drawn.x_0, law)


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_10_superdiff_and_equalises_the_experts(seed: int, carry: bool) -> None:
    log_p = log_probs(seed, 2, 3, 5, 4)
    hidden = torch.ones(3, 5, dtype=torch.bool)
    ell = 0.3 * torch.from_numpy(np.random.default_rng(seed).standard_normal((2, 3))) * carry
    linear = superdiff.equalising_mixture(log_p, hidden, ell)
    r = (linear[:, :, None, None] * log_p.exp()).sum(0)
    balance = ell + (r * log_p).sum((-1, -2))
    assert linear.min() > 0
    assert (balance[0] - balance[1]).abs().max() < ROUNDING
    geometric = superdiff.equalising_exponents(log_p, hidden, ell)
    balance = ell + superdiff.increments(log_p, hidden, geometric)
    assert geometric.min() > 0
    assert (balance[0] - balance[1]).abs().max() < ROUNDING


@pytest.mark.parametrize("form", ["linear", "geometric"])
def test_10_experts_that_agree_share_equally(form: str) -> None:
    same = log_probs(0, 1, 3, 5, 4).expand(2, -1, -1, -1)
    hidden, ell = torch.ones(3, 5, dtype=torch.bool), torch.zeros(2, 3, dtype=torch.float64)
    solve = superdiff.equalising_mixture if form == "linear" else superdiff.equalising_exponents
    assert (solve(same, hidden, ell) == 0.5).all()
    composed = superdiff.SuperDiffAnd(form)(same, SamplerState.begin(torch.full((3, 5), 4), 4, 2))
    assert (composed.log_probs - same[0]).abs().max() < ROUNDING  # NaN would fail this
