"""The exact expert against sums over its joint."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition.single import Single
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.sampler import sample
from tests import enumeration
from tests.toy import close, seeds


def random_joint(seed: int, cells: int, values: int, zeros: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    table = random.random((values,) * cells) * (random.random((values,) * cells) >= zeros)
    table[(0,) * cells] += 0.1
    return table / table.sum()


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.0, 0.6]))
def test_conditionals_and_densities_are_sums_over_the_joint(
    seed: int, cells: int, values: int, zeros: float
) -> None:
    table = random_joint(seed, cells, values, zeros)
    expert = TabularExpert(torch.from_numpy(table))
    partial = enumeration.partial_states(cells, values)
    log_p, density = expert.log_probs(torch.tensor(partial)), expert.log_density(torch.tensor(partial))
    for row, x in enumerate(partial):
        assert float(density[row].exp()) == pytest.approx(enumeration.marginal(table, x), abs=1e-14)
        for cell in range(cells):
            assert close(log_p[row, cell].exp(), enumeration.conditional(table, x, cell))


@given(seeds)
def test_the_answer_does_not_depend_on_the_batch(seed: int) -> None:
    expert = TabularExpert(torch.from_numpy(random_joint(seed, 3, 3, 0.3)))
    partial = torch.tensor(enumeration.partial_states(3, 3))
    together = expert.log_probs(partial)
    for row in (0, 17, 63):
        assert torch.equal(expert.log_probs(partial[row : row + 1])[0], together[row])


def test_a_condition_chooses_among_joints() -> None:
    tables = np.stack([random_joint(seed, 2, 3, 0.0) for seed in range(3)])
    expert = TabularExpert(torch.from_numpy(tables), conditions=True)
    x_t = torch.tensor([[3, 1], [3, 3], [0, 3]])
    which = torch.tensor([2, 0, 1])
    found = expert.log_probs(x_t, expert.encode(which))
    for row, table in enumerate(which.tolist()):
        alone = TabularExpert(torch.from_numpy(tables[table])).log_probs(x_t[row : row + 1])
        assert torch.equal(found[row], alone[0])
    drawn = sample([expert], Single(), torch.full((3, 2), 3), which)
    for item, table in enumerate(which.tolist()):
        alone = sample([TabularExpert(torch.from_numpy(tables[table]))], Single(), torch.full((1, 2), 3))
        assert torch.equal(drawn.x_0[item], alone.x_0[0])
    assert repr(expert) == "TabularExpert(cells=2, values=3, conditions=3)"


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        (None, "expected one of 3 joints for every item, got None"),
        (torch.tensor([0, 3]), r"expected whole numbers in 0 \.\. 2, got 0 \.\. 3"),
        (torch.tensor([-1, 0]), r"expected whole numbers in 0 \.\. 2, got -1 \.\. 0"),
    ],
)
def test_a_condition_that_names_no_joint_is_refused(condition: torch.Tensor | None, what: str) -> None:
    expert = TabularExpert(torch.full((3, 2, 2), 0.25), conditions=True)
    with pytest.raises(InvalidInput, match=f"condition: {what}"):
        sample([expert], Single(), torch.full((2, 2), 2), condition)


@pytest.mark.parametrize(
    ("joint", "what"),
    [
        (torch.ones(2, 3) / 6, r"one axis of the same length per cell, got shape \(2, 3\)"),
        (torch.tensor(1.0), r"one axis of the same length per cell, got shape \(\)"),
        (torch.tensor([0.5, 0.6]), "sum to 1, got a sum of"),
        (torch.tensor([0.5, 0.499]), "sum to 1, got a sum of"),
        (torch.tensor([1.5, -0.5]), "a negative or non-finite entry"),
        (torch.tensor([math.nan, 0.5]), "a negative or non-finite entry"),
        (torch.tensor([math.inf, 0.5]), "a negative or non-finite entry"),
        (torch.full((1,) * 26, 1.0), "use a smaller world"),
    ],
)
def test_a_joint_that_is_none_is_refused(joint: torch.Tensor, what: str) -> None:
    with pytest.raises(InvalidInput, match=f"joint: .*{what}"):
        TabularExpert(joint)


def test_another_number_of_cells_is_refused() -> None:
    with pytest.raises(InvalidInput, match="x_t: expected 2 cells, got 3"):
        TabularExpert(torch.full((2, 2), 0.25)).log_probs(torch.full((1, 3), 2))
