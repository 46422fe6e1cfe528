"""One vector for all weights: layout, initial law, and the gradient of its parts."""

from __future__ import annotations

import math

import pytest
import torch

from factordiff.errors import CheckpointError
from factordiff.networks.parameters import ALIGNMENT, Layout, Slot, convolution, linear

SLOTS = {
    "gain": Slot((5,), mean=1.0),
    "kernel": convolution(4, 3),
    "table": Slot((3, 7), std=0.5),
    "matrix": linear(6, 50),
    "head": Slot((2, 3)),
}


def test_hidden_matrices_come_first_and_everything_is_aligned() -> None:
    layout = Layout(SLOTS)
    assert list(layout.slots) == ["kernel", "matrix", "gain", "table", "head"]
    assert all(offset % ALIGNMENT == 0 for offset in layout.offsets.values())
    assert layout.hidden == layout.offsets["gain"]
    assert layout.count == 5 + 108 + 21 + 300 + 6


def test_unpack_and_pack_are_inverse() -> None:
    layout = Layout(SLOTS)
    vector = layout.initial(3)
    parts = layout.unpack(vector)
    assert {name: tuple(part.shape) for name, part in parts.items()} == {n: s.shape for n, s in SLOTS.items()}
    assert torch.equal(layout.pack(parts), vector)
    parts["gain"] += 1.0  # views: the vector moves with them
    assert torch.equal(layout.pack(layout.unpack(vector)), vector)


def test_the_gradient_of_a_part_lands_in_its_place() -> None:
    layout = Layout(SLOTS)
    vector = layout.initial(0).requires_grad_()
    layout.unpack(vector)["table"].sum().backward()
    expected = torch.zeros(layout.size)
    start = layout.offsets["table"]
    expected[start : start + 21] = 1.0
    assert torch.equal(vector.grad, expected)


def test_the_initial_law() -> None:
    layout = Layout(
        {"big": Slot((40_000,), std=0.5, mean=2.0), "zero": Slot((3,)), "one": Slot((3,), mean=1.0)}
    )
    parts = layout.unpack(layout.initial(1))
    big = (parts["big"] - 2.0) / 0.5
    error = 1.0 / math.sqrt(40_000)
    assert abs(float(big.mean())) < 4 * error
    assert abs(float(big.square().mean()) - 1.0) < 4 * math.sqrt(2) * error
    assert abs(float(big.pow(4).mean()) - 3.0) < 4 * math.sqrt(96) * error
    assert parts["zero"].tolist() == [0.0] * 3
    assert parts["one"].tolist() == [1.0] * 3
    assert torch.equal(layout.initial(1), layout.initial(1))
    assert not torch.equal(layout.initial(1), layout.initial(2))


def test_wrong_names_and_shapes_are_refused() -> None:
    layout = Layout(SLOTS)
    parts = layout.unpack(layout.initial(0))
    with pytest.raises(CheckpointError, match=r"missing: \['gain'\]"):
        layout.pack({name: part for name, part in parts.items() if name != "gain"})
    with pytest.raises(CheckpointError, match=r"unknown: \['module.gain'\]"):
        layout.pack({**parts, "module.gain": parts["gain"]})
    with pytest.raises(CheckpointError, match=r"gain has shape \(6,\)"):
        layout.pack({**parts, "gain": torch.zeros(6)})
