"""Draws by inversion against a walk along the cumulative distribution, and keys that belong to rows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.streams import Draws, Purpose, categorical, uniform
from tests.toy import log_probs, seeds

LAST = 1 - 2.0**-53  # the largest uniform there is


@given(seeds, st.integers(1, 6), st.sampled_from([0.0, 0.5]), st.floats(0, LAST))
def test_the_value_whose_stretch_holds_the_uniform(seed: int, values: int, forbid: float, u: float) -> None:
    log_p = log_probs(seed, 4, values, forbid=forbid)
    found = categorical(log_p, torch.full((4,), u, dtype=torch.float64))
    for row in range(4):
        p = [Fraction(chance) for chance in log_p[row].exp().tolist()]
        below = sum(p[: int(found[row])])
        assert p[int(found[row])] > 0
        slack = Fraction(1, 10**12)  # softmax rounds
        assert below - slack <= Fraction(u) * sum(p) <= below + p[int(found[row])] + slack


def test_a_value_of_probability_zero_is_never_drawn() -> None:
    never = -math.inf
    log_p = torch.tensor([[never, 0.0, never], [never, never, 0.0], [0.0, never, never]], dtype=torch.float64)
    for u in (0.0, 0.5, LAST):
        assert categorical(log_p, torch.full((3,), u, dtype=torch.float64)).tolist() == [1, 2, 0]


def test_draws_have_the_law() -> None:
    count = 50_000
    log_p = log_probs(3, 1, 5)
    drawn = categorical(log_p.expand(count, -1), uniform(9, torch.arange(count)))
    for value, chance in enumerate(log_p[0].exp().tolist()):
        seen = int((drawn == value).sum())
        assert abs(seen - count * chance) < 5 * math.sqrt(count * chance * (1 - chance))


def test_numbers_belong_to_item_particle_step_and_cell() -> None:
    item, particle, step = torch.tensor([4, 9, 4]), torch.tensor([0, 1, 1]), torch.tensor([2, 2, 7])
    draws = Draws(5, item, particle)
    cells = draws.cells(Purpose.TOKEN, step, 3)
    for row, cell in np.ndindex(3, 3):
        key = (5, Purpose.TOKEN, int(item[row]), int(particle[row]), int(step[row]), cell)
        assert cells[row, cell] == uniform(*key)
    assert torch.equal(draws[torch.tensor([2, 0])].cells(Purpose.TOKEN, step[[2, 0]], 3), cells[[2, 0]])
    assert draws.rows(Purpose.EXPERT, step)[1] == uniform(5, Purpose.EXPERT, 9, 1, 2)
    assert len(cells.unique()) == 9


def test_numbers_of_a_factor_belong_to_its_label_and_label_zero_to_the_row() -> None:
    item, particle, step = torch.tensor([4, 9]), torch.tensor([0, 1]), torch.tensor([2, 7])
    draws, labels = Draws(5, item, particle), torch.tensor([[0, 2, 0, 5], [2, 2, 0, 0]])
    found = draws.factors(Purpose.EXPERT, step, labels)
    for row, cell in np.ndindex(2, 4):
        key = [5, Purpose.EXPERT, int(item[row]), int(particle[row]), int(step[row])]
        label = int(labels[row, cell])
        assert found[row, cell] == uniform(*key, *([label] if label else []))
    assert torch.equal(found[:, 2], draws.rows(Purpose.EXPERT, step))
