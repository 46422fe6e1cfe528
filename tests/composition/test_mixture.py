"""Mixtures against their loops."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition.mixture import Mixture, mixture
from tests import oracle
from tests.toy import Drawn, close, drawn, seeds


@given(drawn(), seeds)
def test_mixture_is_the_loop(case: Drawn, seed: int) -> None:
    weights = np.random.default_rng(seed).random(len(case.p)) + 0.01
    omega = weights / weights.sum()
    composed = Mixture(weights.tolist())(case.log_p, case.state).log_probs.exp()
    for row, cell in case.hidden:
        assert close(composed[row, cell], oracle.mixture(case.p[:, row, cell], omega))


@given(drawn(), seeds)
def test_one_weight_per_expert_and_row(case: Drawn, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(case.p)), size=case.p.shape[1]).T
    composed = mixture(case.log_p, torch.from_numpy(weights).log()).exp()
    for row, cell in case.hidden:
        assert close(composed[row, cell], oracle.mixture(case.p[:, row, cell], weights[:, row]))


@given(drawn(experts=(2, 4)), st.integers(0, 1))
def test_all_weight_on_one_expert_is_that_expert(case: Drawn, chosen: int) -> None:
    weights = [float(expert == chosen) for expert in range(len(case.p))]
    composed = Mixture(weights)(case.log_p, case.state).log_probs
    assert torch.equal(composed, case.log_p[chosen])
