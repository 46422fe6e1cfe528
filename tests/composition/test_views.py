"""Views of a value against the formula, and the hard variant."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given

from factordiff.composition.views import HardViews, Views, split
from tests import oracle
from tests.toy import Drawn, close, drawn


@given(drawn(experts=(2, 3), values=(2, 5)))
def test_views_are_the_loop(case: Drawn) -> None:
    composed = Views(occupancy=1, color=0)(case.log_p, case.state)
    for row, cell in case.hidden:
        expected = oracle.views(case.p[1, row, cell], case.p[0, row, cell])
        assert close(composed.log_probs[row, cell].exp(), expected)
        assert composed.log_probs[row, cell].exp().sum().item() == pytest.approx(1.0, abs=1e-12)


@given(drawn(experts=(1, 1), values=(2, 5)))
def test_one_expert_may_answer_both_questions(case: Drawn) -> None:
    composed = Views(0, 0)(case.log_p, case.state)
    assert torch.allclose(composed.log_probs.exp(), case.log_p[0].exp(), atol=1e-12)


@given(drawn(experts=(2, 2), values=(2, 5)))
def test_hard_views_decide_background_first(case: Drawn) -> None:
    composed = HardViews()(case.log_p, case.state)
    assert composed.routing is not None
    assert composed.log_doubt is not None
    for row, cell in case.hidden:
        occupancy, color = case.p[0, row, cell], case.p[1, row, cell]
        background, foreground = occupancy[0], sum(occupancy[1:])
        if abs(background - foreground) < 1e-9:
            continue
        given_fg = oracle.views([0.0, *[1.0] * (len(color) - 1)], color)[1:]
        given_fg = [share / sum(given_fg) for share in given_fg]
        binary = oracle.exact_log_doubt(
            [math.log(p) if p > 0 else -math.inf for p in (background, foreground)]
        )
        if background > foreground:
            expected, doubt = [1.0] + [0.0] * (len(color) - 1), binary
        else:
            log_color = [math.log(share) if share > 0 else -math.inf for share in given_fg]
            expected, doubt = [0.0, *given_fg], max(binary, oracle.exact_log_doubt(log_color))
        assert close(composed.log_probs[row, cell].exp(), expected)
        assert int(composed.routing[row, cell]) == int(background < foreground)
        assert float(composed.log_doubt[row, cell]) == pytest.approx(doubt, abs=1e-9)


def test_no_foreground_at_all_is_split_evenly() -> None:
    log_p = torch.tensor([[[0.0, -math.inf, -math.inf]]], dtype=torch.float64)
    log_bg, log_fg, given_fg = split(log_p)
    assert (log_bg.item(), log_fg.item()) == (0.0, -math.inf)
    assert close(given_fg.exp().flatten(), [0.5, 0.5])
