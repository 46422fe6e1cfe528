"""The three losses against loops, and the constant they are divided by."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.diffusion.objectives import OBJECTIVES, diffusion_loss, full, objective
from factordiff.errors import Unavailable
from tests import oracle
from tests.toy import log_probs, seeds, states


@pytest.mark.parametrize("name", OBJECTIVES)
@given(seeds, st.integers(1, 4), st.integers(1, 6), st.integers(2, 6), st.sampled_from([0.0, 0.5, 1.0]))
def test_losses_are_the_loop(name: str, seed: int, rows: int, cells: int, values: int, hidden: float) -> None:
    log_p = log_probs(seed, rows, cells, values)
    x_0 = states(seed, rows, cells, values, hidden=0.0)
    x_t = torch.where(states(seed + 5, rows, cells, values, hidden) == values, values, x_0)
    t = np.random.default_rng(seed).uniform(0.01, 1, rows)
    found = diffusion_loss(objective(name), log_p, x_0, x_t, torch.from_numpy(t))
    expected = oracle.loss(name, log_p.numpy(), x_0.numpy(), x_t.numpy(), t)
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_divisor_does_not_depend_on_what_is_masked() -> None:
    log_p = log_probs(0, 1, 4, 3).expand(2, -1, -1)
    x_0 = torch.zeros(2, 4, dtype=torch.int64)
    x_t = torch.tensor([[3, 3, 3, 3], [3, 0, 0, 0]])
    t = torch.ones(2, dtype=torch.float64)
    per_cell = full(log_p, x_0)
    expected = (per_cell[0].sum() + per_cell[1, 0]) / 8
    assert float(diffusion_loss(full, log_p, x_0, x_t, t)) == pytest.approx(float(expected))


def test_revealed_cells_get_no_gradient() -> None:
    logits = torch.zeros(1, 2, 3, requires_grad=True)
    x_t = torch.tensor([[3, 1]])
    log_p = torch.log_softmax(logits, dim=-1)
    diffusion_loss(full, log_p, torch.tensor([[2, 1]]), x_t, torch.tensor([0.5])).backward()
    assert logits.grad is not None
    assert (logits.grad[0, 1] == 0).all()
    assert (logits.grad[0, 0] != 0).all()


def test_a_loss_of_another_name_is_refused() -> None:
    with pytest.raises(Unavailable, match="objective: expected one of full, occupancy, color, got 'colour'"):
        objective("colour")
