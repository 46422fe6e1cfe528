"""Margins and doubts against arithmetic with hundreds of digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition.confidence import AGGREGATES, aggregate_log_doubt, log_doubt, margin, temper
from factordiff.errors import InvalidInput
from tests import oracle
from tests.toy import Drawn, close, drawn, log_probs, seeds


@given(drawn())
def test_doubt_and_margin_are_exact(case: Drawn) -> None:
    doubt, sure = log_doubt(case.log_p), margin(case.log_p)
    for index in np.ndindex(*doubt.shape):
        log_p = case.log_p[index].tolist()
        assert float(doubt[index]) == pytest.approx(oracle.exact_log_doubt(log_p), abs=1e-12)
        assert float(sure[index]) == pytest.approx(float(oracle.exact_margin(log_p)), abs=1e-12)


@given(drawn(), st.sampled_from([0.25, 1.0, 4.0]))
def test_tempering_is_a_softmax_of_the_divided_log_probs(case: Drawn, T: float) -> None:
    doubt = log_doubt(temper(case.log_p, torch.full((len(case.p),), T, dtype=torch.float64)))
    for index in np.ndindex(*doubt.shape):
        expected = oracle.exact_log_doubt(case.log_p[index].tolist(), T)
        assert float(doubt[index]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.floats(19, 300), st.floats(1e-6, 1))
def test_margins_that_differ_past_float32_still_differ(gap: float, more: float) -> None:
    log_p = torch.log_softmax(torch.tensor([[gap, 0, 0], [gap + more, 0, 0]], dtype=torch.float64), dim=-1)
    assert log_p.exp().float()[0, 0] == log_p.exp().float()[1, 0] == 1.0  # float32 cannot tell them apart
    doubt = log_doubt(log_p.view(2, 1, 1, 3)).flatten()
    assert doubt[1] < doubt[0]
    assert float(doubt[0] - doubt[1]) == pytest.approx(more, rel=1e-3)


@given(seeds, st.integers(2, 12))
def test_the_order_of_the_values_does_not_change_a_bit(seed: int, values: int) -> None:
    log_p = log_probs(seed, 5, 4, values)
    shuffled = log_p[..., np.random.default_rng(seed).permutation(values)]
    assert torch.equal(log_doubt(log_p), log_doubt(shuffled))


def test_ends_of_the_scale() -> None:
    never = -math.inf
    log_p = torch.tensor([[0.0, never, never], [-math.log(2), -math.log(2), never]], dtype=torch.float64)
    assert log_doubt(log_p.unsqueeze(0))[0, 0] == never  # a point mass leaves no doubt
    assert float(log_doubt(log_p.unsqueeze(0))[0, 1]) == pytest.approx(0.0, abs=1e-15)  # a tie is all doubt
    assert (log_doubt(torch.zeros(1, 2, 1)) == never).all()  # one value: no choice, no doubt


@st.composite
def factored(draw: st.DrawFn) -> tuple[Drawn, torch.Tensor]:
    case = draw(drawn())
    rows, cells = case.x_t.shape
    labels = np.random.default_rng(draw(seeds)).integers(draw(st.integers(1, cells)), size=(rows, cells))
    return case, torch.from_numpy(labels)


@pytest.mark.parametrize("how", AGGREGATES)
@given(factored())
def test_a_factor_speaks_for_its_masked_members(how: str, given: tuple[Drawn, torch.Tensor]) -> None:
    case, labels = given
    doubt = log_doubt(case.log_p)
    found = aggregate_log_doubt(doubt, labels, case.state.masked, how)
    for row, cell in case.hidden:
        members = [c for r, c in case.hidden if r == row and labels[row, c] == labels[row, cell]]
        for expert in range(len(case.p)):
            margins = [oracle.exact_margin(case.log_p[expert, row, c].tolist()) for c in members]
            confidence = oracle.factor_confidence(margins, how)
            if how == "sum-log":
                assert float(found[expert, row, cell]) == pytest.approx(-float(confidence), abs=1e-6)
            else:
                doubtful = 1 - confidence
                expected = -math.inf if doubtful <= 0 else float(doubtful.ln())
                assert float(found[expert, row, cell]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("how", AGGREGATES)
def test_less_doubt_never_lowers_a_factor(how: str) -> None:
    doubts = torch.linspace(-60, -1e-6, 400_001, dtype=torch.float64).view(1, -1, 1)
    labels = torch.zeros(doubts.shape[1], 1, dtype=torch.int64)
    found = aggregate_log_doubt(doubts, labels, torch.ones_like(labels, dtype=torch.bool), how)
    assert (found.flatten().diff() > 0).all()


def test_a_factor_without_masked_cells_has_no_confidence_and_no_nan() -> None:
    doubt = torch.full((2, 1, 3), -torch.inf, dtype=torch.float64)
    labels, masked = torch.tensor([[0, 0, 2]]), torch.tensor([[False, False, True]])
    for how in AGGREGATES:
        found = aggregate_log_doubt(doubt, labels, masked, how)
        assert close(found[:, 0, 0], [0.0, 0.0])
        assert not found.isnan().any()


@pytest.mark.usefixtures("untyped")
def test_an_unknown_aggregate_is_refused() -> None:
    zeros = torch.zeros(1, 1, 1, dtype=torch.float64)
    with pytest.raises(InvalidInput, match="aggregate: expected one of mean, min, sum-log, got 'max'"):
        aggregate_log_doubt(
            zeros, torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1, dtype=torch.bool), "max"
        )
