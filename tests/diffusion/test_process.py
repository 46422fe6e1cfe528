"""The forward process and its reversal against loops, Bayes' rule and counts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.diffusion.process import (
    SMALLEST_TIME,
    corrupt,
    low_discrepancy_times,
    noise,
    reverse_posterior,
)
from factordiff.streams import Purpose, uniform
from factordiff.vocabulary import Vocabulary
from tests import enumeration, oracle
from tests.toy import Drawn, close, drawn, seeds, states

times = st.floats(0.01, 1.0)


@given(drawn(experts=(1, 1)), times, st.floats(0, 0.99))
def test_the_reverse_step_is_the_loop(case: Drawn, t: float, share: float) -> None:
    rows = len(case.x_t)
    s = share * t
    when = torch.tensor([[t] * rows, [s] * rows], dtype=torch.float64)
    found = reverse_posterior(case.log_p[0], case.x_t, *when)
    for row, cell in np.ndindex(*case.x_t.shape):
        expected = oracle.reverse(case.p[0, row, cell], int(case.x_t[row, cell]), t, s)
        assert close(found[row, cell], expected)
        assert found[row, cell].sum().item() == pytest.approx(1.0)


@given(seeds, times, st.floats(0.01, 0.99), st.integers(1, 4))
def test_the_reverse_step_is_bayes_rule(seed: int, t: float, share: float, values: int) -> None:
    """q(x_s | x_t, x_0) = q(x_t | x_s) q(x_s | x_0) / q(x_t | x_0) when the denoiser knows x_0."""
    s, mask = share * t, values
    x_0 = int(np.random.default_rng(seed).integers(values))
    known = torch.full((1, 1, values), -torch.inf, dtype=torch.float64)
    known[..., x_0] = 0.0
    for x_t in (x_0, mask):
        joint = [
            oracle.forward(x_0, x_s, 0.0, s, mask) * oracle.forward(x_s, x_t, s, t, mask)
            for x_s in range(mask + 1)
        ]
        if sum(joint) == 0:
            continue
        when = torch.tensor([[t], [s]], dtype=torch.float64)
        found = reverse_posterior(known, torch.tensor([[x_t]]), *when)[0, 0]
        assert close(found, [part / sum(joint) for part in joint], atol=1e-9)


@given(seeds, st.integers(1, 4), st.integers(1, 6), st.integers(1, 5))
def test_corruption_hides_where_the_uniform_is_below_t(seed: int, rows: int, cells: int, values: int) -> None:
    x_0 = states(seed, rows, cells, values, hidden=0.0)
    random = np.random.default_rng(seed)
    t, u = random.random(rows), random.random((rows, cells))
    found = corrupt(x_0, torch.from_numpy(t), torch.from_numpy(u), Vocabulary(values))
    for row, cell in np.ndindex(rows, cells):
        expected = values if u[row, cell] < t[row] else int(x_0[row, cell])
        assert found[row, cell] == expected


def test_at_the_ends_everything_or_nothing_is_hidden() -> None:
    x_0 = states(0, 3, 50, 4, hidden=0.0)
    u = uniform(0, torch.arange(3)[:, None], torch.arange(50))
    assert (corrupt(x_0, torch.ones(3).double(), u, Vocabulary(4)) == 4).all()
    assert torch.equal(corrupt(x_0, torch.zeros(3).double(), u, Vocabulary(4)), x_0)


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 50))
def test_times_fall_one_into_each_stratum(offset: float, batch: int) -> None:
    index = torch.arange(batch)
    t = low_discrepancy_times(torch.tensor(offset, dtype=torch.float64), index, batch)
    assert float(t.min()) > SMALLEST_TIME
    assert float(t.max()) <= 1
    position = sorted(((1 - t) / (1 - SMALLEST_TIME)).tolist())
    spacing = [later - earlier for earlier, later in pairwise(position)]
    assert spacing == pytest.approx([1 / batch] * (batch - 1), abs=1e-9)
    assert position[0] < 1 / batch + 1e-9
    # a part of the batch gets the part of the times that belongs to it
    assert torch.equal(
        low_discrepancy_times(torch.tensor(offset, dtype=torch.float64), index[::2], batch), t[::2]
    )


def test_noise_belongs_to_seed_step_and_index() -> None:
    t, u = noise(5, 3, torch.arange(8), 8, 6)
    part_t, part_u = noise(5, 3, torch.tensor([6, 2]), 8, 6)
    assert torch.equal(part_t, t[[6, 2]])
    assert torch.equal(part_u, u[[6, 2]])
    assert u[2, 4] == uniform(5, Purpose.CORRUPT, 3, 2, 4)
    assert not torch.equal(noise(5, 4, torch.arange(8), 8, 6)[1], u)
    assert not torch.equal(noise(6, 3, torch.arange(8), 8, 6)[1], u)


def test_each_time_is_uniform_over_the_steps() -> None:
    steps = 1000
    t = torch.stack([noise(0, step, torch.tensor([3]), 8, 1)[0] for step in range(steps)])
    mean = 1 - (1 - SMALLEST_TIME) / 2
    assert abs(float(t.mean()) - mean) < 5 * math.sqrt(1 / 12 / steps)


@pytest.mark.parametrize("t", [0.2, 0.7])
def test_how_much_is_hidden_has_the_marginal_law(t: float) -> None:
    """The chance of each masking pattern is t^hidden (1-t)^shown."""
    rows, cells = 40_000, 3
    u = uniform(1, Purpose.CORRUPT, 0, torch.arange(rows)[:, None], torch.arange(cells))
    x_t = corrupt(
        torch.zeros(rows, cells, dtype=torch.int64),
        torch.full((rows,), t, dtype=torch.float64),
        u,
        Vocabulary(1),
    )
    seen = torch.bincount((x_t * torch.tensor([4, 2, 1])).sum(-1), minlength=8)
    for index, pattern in enumerate(enumeration.clean_states(cells, 2)):
        chance = t ** sum(pattern) * (1 - t) ** (cells - sum(pattern))
        assert abs(float(seen[index]) - rows * chance) < 5 * math.sqrt(rows * chance * (1 - chance))
