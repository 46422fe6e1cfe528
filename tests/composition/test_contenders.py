"""Log-doubts that are left out change nothing: who speaks, and how sure, are bit for bit as if all were worked out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from factordiff import Composed, Routing
from factordiff.composition import contenders
from factordiff.composition.confidence import log_doubt
from factordiff.experts.forward import SUM_TOLERANCE
from factordiff.types import LARGE
from tests.composition.test_large import said, state
from tests.toy import seeds

VALUES = LARGE + 76


def by_all_doubts(log_p: Tensor, routing: Routing) -> Composed:
    """As on a GPU, where nothing is left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contenders, "NOTHING_WAITS", ())
        return routing(log_p, state(log_p.shape[1], log_p.shape[2], log_p.shape[3]))


def check_same(log_p: Tensor, routing: Routing) -> None:
    found = routing(log_p, state(log_p.shape[1], log_p.shape[2], log_p.shape[3]))
    expected = by_all_doubts(log_p, routing)
    for name in ("routing", "log_probs", "log_doubt"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=name)


@given(
    seeds,
    st.sampled_from([0.1, 4.0, 40.0]),
    st.sampled_from([0.0, 1e-5, 1e-3, 0.1]),
    st.sampled_from([torch.float32, torch.float64]),
    st.sampled_from([Routing(), Routing(temperatures=[1.0, 0.5, 2.0], order="tempered")]),
)
def test_who_is_left_out_would_not_have_spoken(
    seed: int, sharp: float, apart: float, dtype: torch.dtype, routing: Routing
) -> None:
    """Experts alike or apart, sums that are off by as much as is taken for rounding."""
    draw = np.random.default_rng(seed)
    log_p = said(seed, 3, 4, 5, VALUES, sharp=sharp).to(dtype)
    others = log_p[0] + apart * said(seed + 1, 2, 4, 5, VALUES).to(dtype)
    log_p[1:, :2] = torch.log_softmax(others, -1)[:, :2]
    off = draw.uniform(-1, 1, (3, 4, 5, 1)) * SUM_TOLERANCE * 0.999
    check_same(log_p + torch.from_numpy(off).to(dtype), routing)


def test_an_expert_that_only_its_sum_puts_ahead_is_not_left_out() -> None:
    """Its margin is less than the other's, but so is its sum, and more."""
    p = torch.full((2, 1, 1, VALUES), 0.5 / (VALUES - 1))
    p[..., 0] = 0.5
    log_p = p.log()
    log_p[0] -= 0.9 * SUM_TOLERANCE
    log_p[1, ..., 0] -= 0.6 * SUM_TOLERANCE  # and what it has less there, the others have more
    log_p[1, ..., 1:] += 0.6 * SUM_TOLERANCE
    margin = log_p[..., 0].exp() - log_p[..., 1].exp()
    assert margin[1] > margin[0]
    assert log_doubt(log_p)[0] < log_doubt(log_p)[1]
    assert Routing()(log_p, state(1, 1, VALUES)).routing.item() == 0  # type: ignore[union-attr]


def test_renamed_values_tie_and_the_first_speaks() -> None:
    log_p = said(3, 1, 2, 3, VALUES)[0]
    renamed = log_p[..., torch.randperm(VALUES, generator=torch.Generator().manual_seed(1))]
    worse = torch.log_softmax(log_p / 2, -1)
    for experts in ([worse, renamed, log_p], [worse, log_p, renamed]):
        routing = Routing()(torch.stack(experts), state(2, 3, VALUES)).routing
        assert routing is not None
        assert (routing == 1).all()


def test_numbers_at_the_ends_of_the_scale() -> None:
    log_p = said(4, 3, 1, 6, VALUES)
    log_p[0, 0, 0] = torch.full((VALUES,), -math.inf).index_fill(0, torch.tensor(5), 0.0)  # a point mass
    log_p[1, 0, 0] = log_p[0, 0, 0].roll(3)  # and another
    log_p[2, 0, 1] = math.nan
    log_p[0, 0, 2] = -math.inf  # nothing at all
    log_p[:, 0, 3] = -math.log(VALUES)  # nobody prefers anything
    log_p[0, 0, 4, ::2] = math.nan
    check_same(log_p[:, :, [0, 1, 3, 4, 5]], Routing())
    found = Routing()(log_p, state(1, 6, VALUES))
    assert found.routing is not None
    assert found.log_probs[0, 1].isnan().all()  # and is refused by whoever looks at sums
    assert found.log_probs[0, 4].isnan().any()
    assert int(found.routing[0, 0]) == int(found.routing[0, 3]) == 0


def test_only_contenders_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out = list[int]()
    original = contenders.log_doubt_of_many

    def counted(log_p: Tensor, top: contenders.TopTwo) -> Tensor:
        worked_out.append(len(log_p))
        return original(log_p, top)

    monkeypatch.setattr(contenders, "log_doubt_of_many", counted)
    log_p = said(5, 3, 4, 5, VALUES)
    Routing()(log_p, state(4, 5, VALUES))
    assert 20 <= sum(worked_out) <= 24  # one of three at most cells
    worked_out.clear()
    Routing()(log_p[:1].expand(3, -1, -1, -1), state(4, 5, VALUES))
    assert sum(worked_out) == 60
    worked_out.clear()
    few = torch.log_softmax(log_p[..., :LARGE], -1)
    Routing()(few, state(4, 5, LARGE))  # small vocabularies are left as they are
    assert worked_out == []
