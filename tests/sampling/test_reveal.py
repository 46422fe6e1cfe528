"""Which cells are next, against sorting by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.errors import InvalidInput
from factordiff.sampling.reveal import Ancestral, ByConfidence, Posterior, surest, surest_one
from factordiff.state import SamplerState
from factordiff.streams import Purpose, uniform
from tests import oracle
from tests.toy import seeds


def moment(masked: torch.Tensor, step: int, start: int | None = None) -> SamplerState:
    """States with these cells masked at this step; they began with so many, some of which may not be among them."""
    state = SamplerState.begin(torch.where(masked, 3, 0), 3, 1, seed=3)
    began = state.start
    if start is not None:
        began = torch.arange(max(start, masked.shape[1])) < start
        began = began.expand(len(masked), -1)
    return replace(state, clock=torch.full((len(masked),), step), start=began)


def posterior(log_doubt: torch.Tensor) -> Posterior:
    """For rules that look at doubts alone."""
    return Posterior(torch.zeros(*log_doubt.shape, 1, dtype=torch.float64), log_doubt)


@given(seeds, st.integers(1, 4), st.integers(1, 8), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_surest_are_the_first_of_a_stable_sort(seed: int, rows: int, cells: int, hidden: float) -> None:
    random = np.random.default_rng(seed)
    # few different doubts, so that there are ties; the two ends of the scale among them
    doubt = torch.from_numpy(random.choice([-np.inf, -30.0, -1.0, -1e-17, 0.0], size=(rows, cells)))
    among = torch.from_numpy(random.random((rows, cells)) < hidden)
    count = torch.from_numpy(random.integers(0, cells + 2, size=rows))
    found = surest(doubt, among, count)
    for row in range(rows):
        expected = oracle.surest(doubt[row].tolist(), among[row].tolist(), int(count[row]))
        assert found[row].nonzero().flatten().tolist() == expected
    assert torch.equal(surest_one(doubt, among), surest(doubt, among, torch.ones(rows, dtype=torch.int64)))


def test_doubts_that_differ_past_float32_are_ordered() -> None:
    doubt = torch.tensor([[-1.0, -1.0 - 1e-12, -1.0 - 2e-12]], dtype=torch.float64)
    assert surest(doubt, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1])).tolist() == [
        [False, False, True]
    ]


def test_ties_go_to_the_lowest_cell() -> None:
    masked = torch.tensor([[False, True, True, True]])
    rule, now = ByConfidence(3), moment(masked, 0)
    chosen = rule.choose(posterior(torch.full((1, 4), -0.5, dtype=torch.float64)), masked, now)
    assert chosen.tolist() == [[False, True, False, False]]


def test_a_doubt_that_is_no_number_waits_but_is_not_forgotten() -> None:
    """Else a loop that waits for every cell to be revealed would wait for ever."""
    doubt = torch.tensor([[math.nan, -1.0, math.nan, -2.0]], dtype=torch.float64)
    among = torch.tensor([[True, True, True, False]])
    assert surest(doubt, among, torch.tensor([2])).tolist() == [[True, True, False, False]]
    assert surest(doubt, torch.tensor([[True, False, False, False]]), torch.tensor([1])).tolist()[0][0]


@given(st.integers(1, 40), st.integers(1, 60))
def test_quotas_spread_evenly_and_add_up(cells: int, steps: int) -> None:
    masked = torch.ones(1, cells, dtype=torch.bool)
    rule = ByConfidence(steps)
    moments = [moment(masked, step) for step in range(steps)]
    found = [int(rule.quota(now)) for now in moments]
    assert found == [oracle.quota(cells, steps, step) for step in range(steps)]
    assert sum(found) == cells
    assert max(found) - min(found) <= 1
    for step, now in enumerate(moments):
        assert bool(rule.candidates(now).any()) == (found[step] > 0)
        next_useful = next((later for later in range(step, steps) if found[later] > 0), None)
        if next_useful is not None:
            assert int(rule.due(now)) == next_useful


@given(seeds, st.integers(1, 20))
def test_confidence_reveals_its_quota_of_the_masked(seed: int, steps: int) -> None:
    random = np.random.default_rng(seed)
    masked = torch.from_numpy(random.random((3, 6)) < 0.6)
    doubt = torch.from_numpy(-random.random((3, 6)))
    rule, now = ByConfidence(steps), moment(masked, 0)
    chosen = rule.choose(posterior(doubt), rule.candidates(now), now)
    assert not (chosen & ~masked).any()
    expected = [min(oracle.quota(int(row.sum()), steps, 0), int(row.sum())) for row in masked]
    assert chosen.sum(-1).tolist() == expected


@given(st.integers(1, 30), st.integers(0, 40))
def test_ancestral_compares_with_one_over_what_is_left(steps: int, step: int) -> None:
    masked = torch.ones(5, 4, dtype=torch.bool)
    masked[0, 1] = False
    now = moment(masked, step)
    rule = Ancestral(steps)
    candidates = rule.candidates(now)
    left = max(steps - step, 1)
    for row, cell in np.ndindex(5, 4):
        u = float(uniform(3, Purpose.REVEAL, row, 0, step, cell))
        assert bool(candidates[row, cell]) == (bool(masked[row, cell]) and u < 1 / left)
    assert torch.equal(
        rule.choose(posterior(torch.zeros(5, 4, dtype=torch.float64)), candidates, now), candidates
    )


def test_when_a_cell_is_revealed_is_uniform_over_the_steps() -> None:
    steps, rows = 5, 20_000
    masked = torch.ones(rows, 1, dtype=torch.bool)
    for step in range(steps):
        opened = Ancestral(steps).candidates(moment(masked, step))
        seen = int(opened.sum())
        assert abs(seen - rows / steps) < 5 * math.sqrt(rows * 0.16)  # a fifth of all, each time
        masked = masked & ~opened
    assert not masked.any()


@given(seeds, st.integers(1, 40))
def test_ancestral_is_due_when_the_first_cell_is(seed: int, steps: int) -> None:
    masked = torch.from_numpy(np.random.default_rng(seed).random((6, 3)) < 0.5)
    rule = Ancestral(steps)
    due = rule.due(moment(masked, 0)).tolist()
    each = [rule.candidates(moment(masked, step)).any(-1).tolist() for step in range(steps)]
    for row, first in enumerate(due):
        opened = [rows[row] for rows in each]
        assert first == (opened.index(True) if masked[row].any() else 0)


@pytest.mark.parametrize("steps", [0, -3, 1.5, True, "4", None])
@pytest.mark.parametrize("rule", [Ancestral, ByConfidence])
@pytest.mark.usefixtures("untyped")
def test_steps_that_are_no_count_are_refused(rule: type, steps: object) -> None:
    with pytest.raises(InvalidInput, match="steps: expected a whole number of at least 1, got"):
        rule(steps)
