"""SUBS, and encodings that follow their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert, substitute, take
from factordiff.experts.tabular import TabularExpert
from factordiff.vocabulary import Vocabulary
from tests.toy import close, seeds, states


@given(
    seeds,
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_substitution_is_the_loop(
    seed: int, rows: int, cells: int, values: int, with_mask: bool, hidden: float
) -> None:
    logits = np.random.default_rng(seed).standard_normal((rows, cells, values + with_mask)).astype(np.float32)
    if with_mask:
        logits[..., -1] = 50.0  # however sure a network is of MASK, it is never predicted
    x_t = states(seed, rows, cells, values, hidden)
    found = substitute(torch.from_numpy(logits), x_t, Vocabulary(values)).exp()
    for row, cell in np.ndindex(rows, cells):
        raised = np.exp(logits[row, cell, :values].astype(np.float64))
        expected = raised / raised.sum()
        if x_t[row, cell] != values:
            expected = np.eye(values)[int(x_t[row, cell])]
        assert close(found[row, cell], expected, atol=1e-6)


class Pair(NamedTuple):
    keys: torch.Tensor
    values: torch.Tensor | None


def test_an_encoding_of_any_make_follows_its_rows() -> None:
    part = torch.arange(12).view(4, 3)
    rows = torch.tensor([2, 0, 2])
    expected = part[rows]
    assert take(None, rows) is None
    assert torch.equal(take(part, rows), expected)
    both = take((part, {"deep": part, "none": None}), rows)
    assert type(both) is tuple
    assert torch.equal(both[0], expected)
    assert torch.equal(both[1]["deep"], expected)
    assert both[1]["none"] is None
    named = take(Pair(part, None), rows)
    assert type(named) is Pair
    assert torch.equal(named.keys, expected)


@pytest.mark.parametrize("encoded", [[1, 2], 3, "text"])
def test_other_encodings_are_refused(encoded: object) -> None:
    with pytest.raises(InvalidInput, match=r"encoded: expected None, a tensor.*encode\(\)"):
        take(encoded, torch.tensor([0]))


def test_a_tabular_expert_is_an_expert() -> None:
    assert isinstance(TabularExpert(torch.tensor([0.5, 0.5])), Expert)
    assert not isinstance(object(), Expert)
