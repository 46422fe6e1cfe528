"""Values and the probabilities they are drawn with, against loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition.composition import Composed
from factordiff.composition.emission import draw_tokens, log_drawn, log_prob_of_cells, tempered
from factordiff.composition.evidence import Evidence
from factordiff.composition.mixture import Mixture
from factordiff.composition.superdiff import SuperDiff
from factordiff.state import SamplerState
from tests import enumeration
from tests.toy import Drawn, close, drawn, log_probs, seeds, state

temperatures = st.sampled_from([0.3, 1.0, 2.5])


def some(seed: int, case: Drawn) -> tuple[torch.Tensor, torch.Tensor]:
    """Random values and a random part of the masked cells."""
    random = np.random.default_rng(seed)
    tokens = torch.from_numpy(random.integers(case.p.shape[-1], size=case.x_t.shape))
    return tokens, torch.from_numpy(random.random(case.x_t.shape) < 0.6) & case.state.masked


@given(drawn(), seeds, temperatures)
def test_cells_drawn_apart_multiply(case: Drawn, seed: int, tau: float) -> None:
    tokens, cells = some(seed, case)
    composed = Mixture()(case.log_p, case.state)
    found = log_drawn(case.log_p, composed, tokens, cells, tau).exp()
    for row in range(len(tokens)):
        chance = 1.0
        for cell in cells[row].nonzero().flatten().tolist():
            chance *= enumeration.tempered(composed.log_probs[row, cell].exp().tolist(), tau)[
                int(tokens[row, cell])
            ]
        assert float(found[row]) == pytest.approx(chance, rel=1e-9, abs=1e-300)


@given(drawn(), seeds, temperatures)
def test_cells_spoken_by_one_expert_mix_as_a_whole(case: Drawn, seed: int, tau: float) -> None:
    tokens, cells = some(seed, case)
    composed = SuperDiff()(case.log_p, case.state)
    assert composed.log_kappa is not None
    found = log_drawn(case.log_p, composed, tokens, cells, tau).exp()
    for row in range(len(tokens)):
        chance = 0.0
        for expert, kappa in enumerate(composed.log_kappa[:, row].exp().tolist()):
            alone = kappa
            for cell in cells[row].nonzero().flatten().tolist():
                alone *= enumeration.tempered(case.p[expert, row, cell].tolist(), tau)[int(tokens[row, cell])]
            chance += alone
        assert float(found[row]) == pytest.approx(chance, rel=1e-9, abs=1e-300)


@given(drawn(), seeds, temperatures)
def test_cells_of_one_owner_mix_as_a_whole_and_owners_multiply(case: Drawn, seed: int, tau: float) -> None:
    tokens, cells = some(seed, case)
    random = np.random.default_rng(seed)
    labels = torch.from_numpy(random.integers(tokens.shape[1], size=tokens.shape))
    composed = Evidence(labels, evidence=torch.from_numpy(-random.random(case.log_p.shape[:3])))(
        case.log_p, case.state
    )
    assert composed.weights is not None
    assert composed.owners is not None
    found = log_drawn(case.log_p, composed, tokens, cells, tau).exp()
    for row in range(len(tokens)):
        expected = 1.0
        for label in set(labels[row][cells[row]].tolist()):
            chance = 0.0
            own = ((labels[row] == label) & cells[row]).nonzero().flatten().tolist()
            for expert, kappa in enumerate(composed.weights[:, row, own[0]].tolist()):
                alone = kappa
                for cell in own:
                    said = enumeration.tempered(case.p[expert, row, cell].tolist(), tau)
                    alone *= said[int(tokens[row, cell])]
                chance += alone
            expected *= chance
        assert float(found[row]) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(drawn(), seeds)
def test_log_probs_of_cells_are_sums(case: Drawn, seed: int) -> None:
    tokens, cells = some(seed, case)
    found = log_prob_of_cells(case.log_p, tokens, cells)
    expected = np.zeros(found.shape)
    for expert, row in np.ndindex(*found.shape):
        for cell in cells[row].nonzero().flatten().tolist():
            expected[expert, row] += float(case.log_p[expert, row, cell, tokens[row, cell]])
    assert close(found, expected)


@pytest.mark.parametrize("tau", [1e-300, 1e-9, 0.3, 1.0, 1e9])
def test_any_temperature_gives_a_distribution(tau: float) -> None:
    log_p = log_probs(0, 2, 3, 4, forbid=0.4)
    said = tempered(log_p, tau).exp()
    assert torch.allclose(said.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    assert (said[log_p == -math.inf] == 0).all()


def test_temperature_zero_takes_the_likeliest_and_the_lowest_of_equals() -> None:
    log_p = torch.log_softmax(torch.tensor([[[[0.0, 1.0, 1.0], [2.0, 0.0, 2.0]]]]), dim=-1)
    begun = SamplerState.begin(torch.full((1, 2), 3), 3, 1)
    tokens = draw_tokens(log_p, Composed(log_p[0]), 0.0, begun)
    assert tokens.tolist() == [[1, 0]]


def test_one_expert_speaks_for_every_cell_of_a_step() -> None:
    rows = 4000
    log_p = torch.full((2, rows, 3, 2), -torch.inf, dtype=torch.float64)
    log_p[0, :, :, 0] = 0.0  # the first expert always says 0, the second always 1
    log_p[1, :, :, 1] = 0.0
    start = state(torch.full((rows, 3), 2), 2, torch.zeros(2, rows, dtype=torch.float64))
    tokens = draw_tokens(log_p, SuperDiff([0.3, 0.7])(log_p, start), 1.0, start)
    assert (tokens == tokens[:, :1]).all()
    share = float(tokens[:, 0].double().mean())
    assert abs(share - 0.7) < 5 * math.sqrt(0.21 / rows)


def test_one_expert_speaks_for_every_cell_of_a_factor_and_factors_choose_apart() -> None:
    rows = 4000
    log_p = torch.full((2, rows, 4, 2), -torch.inf, dtype=torch.float64)
    log_p[0, :, :, 0] = 0.0  # the first expert always says 0, the second always 1
    log_p[1, :, :, 1] = 0.0
    start = state(torch.full((rows, 4), 2), 2, torch.zeros(2, rows, dtype=torch.float64))
    composed = Evidence(torch.tensor([3, 0, 3, 0]), weights=[0.3, 0.7])(log_p, start)
    tokens = draw_tokens(log_p, composed, 1.0, start)
    assert torch.equal(tokens[:, 0], tokens[:, 2])
    assert torch.equal(tokens[:, 1], tokens[:, 3])
    for one, other, chance in ((1, 1, 0.49), (1, 0, 0.21), (0, 1, 0.21), (0, 0, 0.09)):
        share = float(((tokens[:, 0] == one) & (tokens[:, 1] == other)).double().mean())
        assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / rows)
    # a factor of label 0 draws the numbers of a whole row
    whole = draw_tokens(log_p, SuperDiff([0.3, 0.7])(log_p, start), 1.0, start)
    assert torch.equal(tokens[:, 1], whole[:, 1])
