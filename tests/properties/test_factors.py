"""Properties 11 and 12: routing by factor, and views of a value."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from factordiff.composition import confidence, routing
from factordiff.composition.composition import Composition
from factordiff.composition.factors import pixels, whole
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import Product
from factordiff.composition.single import Single
from factordiff.composition.views import Views
from factordiff.experts.tabular import TabularExpert
from factordiff.toy.law import exact_law
from tests import enumeration
from tests.enumeration import tv
from tests.toy import (
    CELLS,
    EXPERTS,
    MASK,
    ROUNDING,
    STATES,
    WORLD,
    law_of,
    log_probs,
)
from tests.toy import state as at
from tests.training_toy import occupancy_after_training


def test_11_routing_identities() -> None:
    log_p = torch.stack([expert.log_probs(STATES) for expert in EXPERTS])
    start = at(STATES, MASK, torch.zeros(2, len(STATES), dtype=torch.float64))
    plain = routing.Routing()(log_p, start)
    hidden = start.masked
    assert plain.routing is not None

    same = exact_law([EXPERTS[0]] * 3, routing.Routing(), CELLS).distribution().numpy()
    assert tv(same, law_of(Single())) < ROUNDING  # identical experts are one expert
    pixel = routing.Routing(pixels(CELLS))(log_p, start)
    assert torch.equal(pixel.log_probs[hidden], plain.log_probs[hidden])
    neutral = routing.Routing(temperatures=[1.0, 1.0])(log_p, start)
    assert torch.equal(neutral.log_probs, plain.log_probs)
    # one label for the whole grid is a choice per sample
    sample_wise = routing.Routing(whole(CELLS))(log_p, start).routing
    assert sample_wise is not None
    mean = torch.where(hidden, confidence.margin(log_p), 0.0).sum(-1) / hidden.sum(-1).clamp(min=1)
    for row in range(len(STATES) - 1):
        if hidden[row].any():
            assert (sample_wise[row, hidden[row]] == mean[:, row].argmax()).all()


def test_11_permuting_the_experts_changes_only_ties() -> None:
    log_p = log_probs(11, 3, 40, 6, 3)
    log_p[1, :20] = log_p[0, :20].flip(-1)  # the same margins from other values: ties of experts 0 and 1
    start = at(torch.full((40, 6), 3), 3, torch.zeros(3, 40, dtype=torch.float64))
    order = [2, 1, 0]
    straight = routing.Routing()(log_p, start)
    permuted = routing.Routing()(log_p[order], start)
    assert straight.routing is not None
    assert permuted.routing is not None
    tied = (straight.routing < 2) & (torch.arange(40) < 20)[:, None]
    assert torch.equal(torch.tensor(order)[permuted.routing][~tied], straight.routing[~tied])
    assert torch.equal(permuted.log_probs[~tied], straight.log_probs[~tied])
    assert (straight.routing[tied] == 0).all()  # the lowest index of the list it was given
    assert (permuted.routing[tied] == 1).all()
    assert tied.any()
    assert not tied.all()


def test_11_temperatures_choose_who_speaks_and_not_what_is_said() -> None:
    log_p = torch.stack([expert.log_probs(STATES) for expert in EXPERTS])
    start = at(STATES, MASK, torch.zeros(2, len(STATES), dtype=torch.float64))
    composed = routing.Routing(temperatures=[1.0, 0.25])(log_p, start)
    assert composed.routing is not None
    said = log_p.gather(0, composed.routing[None, :, :, None].expand(1, -1, -1, MASK))[0]
    assert torch.equal(composed.log_probs, said)
    assert (composed.routing != routing.Routing()(log_p, start).routing)[start.masked].any()
    # reveals are ordered by the untempered margin of what is emitted
    law = law_of(routing.Routing(temperatures=[1.0, 0.25]))
    expected = enumeration.confidence_law(WORLD, enumeration.routed([1.0, 0.25]))[0]
    assert tv(law, expected) < ROUNDING
    tempered = routing.Routing(temperatures=[1.0, 0.25], order="tempered")
    assert tv(law_of(tempered), expected) > 0.1


def test_11_experts_right_on_disjoint_halves_are_composed_exactly() -> None:
    left, right = enumeration.joint(3, cells=2), enumeration.joint(4, cells=2)
    even = np.full((3, 3), 1 / 9)
    halves = [
        TabularExpert(torch.from_numpy(np.multiply.outer(*pair))) for pair in ((left, even), (even, right))
    ]
    truth = np.multiply.outer(left, right)

    def gap(composition: Composition) -> float:
        return tv(exact_law(halves, composition, CELLS).distribution().numpy(), truth)

    assert gap(routing.Routing()) < ROUNDING
    assert gap(Product()) < ROUNDING
    assert gap(Mixture()) > 0.2
    assert gap(Product([0.5, 0.5])) > 0.2


def test_12_views_are_the_posterior_for_any_split_of_the_foreground() -> None:
    posterior = EXPERTS[0].log_probs(STATES)
    log_fg = posterior[..., 1:].logsumexp(-1, keepdim=True)
    for seed in range(3):
        q = log_probs(seed, len(STATES), CELLS, 2)
        occupancy = torch.cat([posterior[..., :1], log_fg + q], dim=-1)
        leak = log_probs(seed + 10, len(STATES), CELLS, 2)  # whatever the color expert gives to background
        given_fg = torch.where(log_fg > -torch.inf, posterior[..., 1:] - log_fg, -math.log(2))
        color = torch.cat([leak[..., :1], leak[..., 1:] + given_fg], dim=-1)
        start = at(STATES, MASK, torch.zeros(2, len(STATES), dtype=torch.float64))
        composed = Views()(torch.stack([occupancy, color]), start)
        assert (composed.log_probs.exp() - posterior.exp()).abs().max() < ROUNDING


def test_12_occupancy_training_from_a_zero_head_keeps_the_split_even() -> None:
    zero, default = occupancy_after_training(zero_head=True), occupancy_after_training(zero_head=False)
    assert zero.accuracy > 0.95
    assert zero.largest_share == pytest.approx(1 / 9, abs=1e-6)
    assert default.largest_share > 0.3  # an ordinary head decides the split by accident
