"""What the cells are told: positions, averages, channels, and demonstrations in any order and number."""

from __future__ import annotations

import math

import pytest
import torch

from factordiff.experts.condition import Condition
from factordiff.networks.conditioning import demonstration_channels, mean_over_frames, sinusoidal_positions
from tests.networks.small_networks import BACKBONES, CONDITIONINGS, condition, partly_masked, small

both = pytest.mark.parametrize("backbone", BACKBONES)


def reordered(told: Condition, order: list[int]) -> Condition:
    return Condition(
        told.query, told.context_inputs[:, order], told.context_outputs[:, order], told.present[:, order]
    )


def padded(told: Condition, frames: int) -> Condition:
    """The same demonstrations in more slots; what lies in the empty ones is rubbish on purpose."""
    items, had, cells = told.context_inputs.shape
    rubbish = torch.full((items, frames - had, cells), 7)
    absent = torch.zeros(items, frames - had, dtype=torch.bool)
    return Condition(
        told.query,
        torch.cat([told.context_inputs, rubbish], 1),
        torch.cat([told.context_outputs, rubbish], 1),
        torch.cat([told.present, absent], 1),
    )


@both
@pytest.mark.parametrize("patch", [1, 2, 3])
@pytest.mark.parametrize("paths", [{}, {"field": False}])
def test_the_order_of_the_demonstrations_changes_nothing(
    backbone: str, patch: int, paths: dict[str, bool]
) -> None:
    network = small(backbone, **paths, **({"pair_patch": patch} if backbone == "trans-ir" else {}))
    told, x_t = condition(4, frames=4), partly_masked(4)
    expected = network.log_probs(x_t, network.encode(told)).exp()
    for order in ([3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]):
        found = network.log_probs(x_t, network.encode(reordered(told, order))).exp()
        assert torch.allclose(found, expected, atol=1e-6)


@both
@pytest.mark.parametrize("frames", [1, 2, 5, 10])
@pytest.mark.parametrize("paths", [{}, {"field": False}])
def test_one_to_ten_demonstrations(backbone: str, frames: int, paths: dict[str, bool]) -> None:
    network = small(backbone, **paths)
    told, x_t = condition(3, frames=frames), torch.full((3, 16), 10)
    log_probs = network.log_probs(x_t, network.encode(told))
    assert torch.isfinite(log_probs).all()
    if frames < 10:
        more = network.log_probs(x_t, network.encode(padded(told, 10)))
        assert torch.allclose(more, log_probs, atol=1e-5)


@both
@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_every_demonstration_matters(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning)
    told, x_t = condition(3), torch.full((3, 16), 10)
    expected = network.log_probs(x_t, network.encode(told))
    for frame in range(3):
        outputs = told.context_outputs.clone()
        outputs[:, frame, 5] = (outputs[:, frame, 5] + 1) % 10
        changed = Condition(told.query, told.context_inputs, outputs, told.present)
        assert not torch.equal(network.log_probs(x_t, network.encode(changed)), expected)


@both
def test_a_repeated_demonstration_says_nothing_new(backbone: str) -> None:
    network = small(backbone)
    told, x_t = condition(3, frames=2), partly_masked(3)
    twice = reordered(told, [0, 1, 0, 1])
    expected = network.log_probs(x_t, network.encode(told)).exp()
    assert torch.allclose(network.log_probs(x_t, network.encode(twice)).exp(), expected, atol=1e-6)


@both
@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_no_demonstration_at_all_is_finite(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning)
    told = condition(2)
    nothing = Condition(
        told.query, told.context_inputs, told.context_outputs, torch.zeros(2, 3, dtype=torch.bool)
    )
    x_t = torch.full((2, 16), 10)
    assert torch.isfinite(network.log_probs(x_t, network.encode(nothing))).all()


def test_positions_are_the_appendixs() -> None:
    table = sinusoidal_positions(3, 5, 144).view(3, 5, 144)
    for i, j, k in ((0, 0, 1), (2, 4, 1), (1, 3, 17), (2, 1, 36)):
        omega = 10000.0 ** (-4 * k / 144)
        expected = [math.sin(omega * i), math.cos(omega * i), math.sin(omega * j), math.cos(omega * j)]
        assert table[i, j, 4 * (k - 1) : 4 * k].tolist() == pytest.approx(expected, abs=1e-6)
    rows = table.flatten(0, 1)
    assert (torch.cdist(rows, rows) + 9 * torch.eye(15)).min() > 0.1  # every place is another vector


def test_mean_over_frames() -> None:
    values = torch.arange(12.0).view(2, 3, 2)
    present = torch.tensor([[True, False, True], [False, False, False]])
    assert mean_over_frames(values, present).tolist() == [[2.0, 3.0], [0.0, 0.0]]


def test_channels_hold_the_first_slots_and_zero_for_the_missing() -> None:
    told = condition(2, frames=2, cells=3)
    present = torch.tensor([[True, True], [True, False]])
    channels = demonstration_channels(
        told.context_inputs, told.context_outputs, present, 3, 10, torch.float32
    )
    assert channels.shape == (2, 3, 60)
    assert channels[0].sum(-1).tolist() == [4.0] * 3  # two pairs of one-hot vectors
    assert channels[1].sum(-1).tolist() == [2.0] * 3
    for cell in range(3):
        assert channels[0, cell, 20 + int(told.context_inputs[0, 1, cell])] == 1.0
        assert channels[0, cell, 30 + int(told.context_outputs[0, 1, cell])] == 1.0
    many = condition(1, frames=5, cells=3)
    five = demonstration_channels(
        many.context_inputs, many.context_outputs, many.present, 3, 10, torch.float32
    )
    assert five.shape == (1, 3, 60)


@both
@pytest.mark.parametrize("patch", [1, 2, 3])
def test_the_field_tells_each_cell_of_its_own_place(backbone: str, patch: int) -> None:
    """A change in one corner of a demonstration moves the field most at that corner's place."""
    fields: dict[str, object] = {"layout": [7, 7], "field": True}
    network = small(backbone, **fields, **({"pair_patch": patch} if backbone == "trans-ir" else {}))
    told = condition(1, cells=49)
    outputs = told.context_outputs.clone()
    outputs[:, :, -1] = (outputs[:, :, -1] + 1) % 10
    changed = Condition(told.query, told.context_inputs, outputs, told.present)
    moved = (network.encode(changed).cells - network.encode(told).cells).abs()
    moved = moved[0].sum(-1).view(7, 7) if backbone == "trans-ir" else moved[0].sum(0)
    assert moved.argmax() == 48
    assert moved[6, 6] > 2 * moved[0, 0]
