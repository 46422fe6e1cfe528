"""Votes against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition.vote import majority_vote
from factordiff.errors import InvalidInput
from tests import oracle
from tests.toy import seeds


@given(seeds, st.integers(1, 6), st.integers(1, 3), st.integers(1, 5), st.integers(1, 4))
def test_vote_is_the_loop(seed: int, runs: int, items: int, cells: int, values: int) -> None:
    samples = torch.from_numpy(np.random.default_rng(seed).integers(values, size=(runs, items, cells)))
    voted = majority_vote(samples, values)
    for item in range(items):
        assert voted[item].tolist() == oracle.vote(samples[:, item].tolist())


def test_ties_go_to_the_earliest_run() -> None:
    assert majority_vote(torch.tensor([2, 0, 0, 2, 1]).view(5, 1, 1), 3).item() == 2
    assert majority_vote(torch.tensor([1, 2, 0]).view(3, 1, 1), 3).item() == 1


def test_no_run_and_unfinished_runs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="samples: expected at least one run"):
        majority_vote(torch.zeros(0, 1, 1, dtype=torch.int64), 3)
    with pytest.raises(InvalidInput, match=r"samples: expected values 0 \.\. 2"):
        majority_vote(torch.tensor([3]).view(1, 1, 1), 3)
