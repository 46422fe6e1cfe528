"""Muon and AdamW on one vector against PyTorch's own, matrix by matrix."""

from __future__ import annotations

import pytest
import torch

from factordiff.networks.parameters import Layout, Slot, convolution, linear
from factordiff.streams import Purpose, uniform
from factordiff.training.optimizer import Optimizer, orthogonalize, stacks
from tests.networks.small_networks import small

SLOTS = {
    "tall": linear(20, 8),
    "wide": linear(8, 20),
    "square": linear(8, 8),
    "another": linear(8, 20),
    "kernel": convolution(4, 3),
    "three": Slot((3, 8, 5), 0.3, matrices=(3, 8, 5)),
    "gain": Slot((7,), mean=1.0),
    "table": Slot((3, 5), std=1.0),
}


def gradients(layout: Layout, step: int) -> torch.Tensor:
    parts = {
        name: uniform(step, Purpose.INIT, index, torch.arange(slot.size), dtype=torch.float32).view(
            slot.shape
        )
        - 0.5
        for index, (name, slot) in enumerate(layout.slots.items())
    }
    return layout.pack(parts)


def run(layout: Layout, steps: int, dtype: torch.dtype, weight_decay: float = 0.0) -> torch.Tensor:
    vector = layout.initial(0)
    optimizer = Optimizer(layout, lr=0.02, lr_rest=0.01, dtype=dtype, weight_decay=weight_decay)
    for step in range(steps):
        factor, count = torch.tensor(1.0 - 0.1 * step), torch.tensor(step)
        optimizer.step(vector, gradients(layout, step), factor, count, torch.tensor(True))
    return vector


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_against_torch(weight_decay: float) -> None:
    """Same matrices, same rates: torch.optim.Muon (bfloat16) and AdamW."""
    layout = Layout(SLOTS)
    leaves: dict[str, list[torch.nn.Parameter]] = {}
    for name, part in layout.unpack(layout.initial(0)).items():
        shape = layout.slots[name].matrices
        pieces = [part] if shape is None else list(part.reshape(shape).unbind(0))
        leaves[name] = [torch.nn.Parameter(piece.clone()) for piece in pieces]
    hidden = [p for n, ps in leaves.items() if layout.slots[n].matrices is not None for p in ps]
    rest = [p for n, ps in leaves.items() if layout.slots[n].matrices is None for p in ps]
    muon = torch.optim.Muon(hidden, lr=0.02, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
    adamw = torch.optim.AdamW(rest, lr=0.01, betas=(0.9, 0.99), weight_decay=weight_decay)
    for step in range(5):
        for name, part in layout.unpack(gradients(layout, step)).items():
            shape = layout.slots[name].matrices
            pieces = [part] if shape is None else list(part.reshape(shape).unbind(0))
            for leaf, piece in zip(leaves[name], pieces, strict=True):
                leaf.grad = piece.clone()
        for group in (*muon.param_groups, *adamw.param_groups):
            group["lr"] = (0.02 if group in muon.param_groups else 0.01) * (1.0 - 0.1 * step)
        muon.step()
        adamw.step()
    found = layout.unpack(run(layout, 5, torch.bfloat16, weight_decay))
    start = layout.unpack(layout.initial(0))
    for name, pieces in leaves.items():
        expected = torch.stack([piece.detach().flatten() for piece in pieces]).view(layout.slots[name].shape)
        moved = (expected - start[name]).norm()
        tolerance = 1e-5 if layout.slots[name].matrices is None else 2e-2  # bfloat16 sums in another order
        assert (found[name] - expected).norm() <= tolerance * moved, name


def test_one_padded_stack_is_the_same_as_stacks_by_shape() -> None:
    layout = Layout(SLOTS)
    matrix = gradients(layout, 3)[: layout.hidden]
    results = []
    for padded in (False, True):
        found, position = stacks(layout, padded)
        assert len(found) == (1 if padded else 4)
        source = torch.nn.functional.pad(matrix, (0, 1))
        updates = [orthogonalize(source[s.index], torch.float32) * s.scale for s in found]
        flat = torch.cat([*(update.flatten() for update in updates), torch.zeros(1)])
        results.append(flat[position])
    assert torch.allclose(results[0], results[1], atol=1e-5)


@pytest.mark.parametrize("backbone", ["trans-ir", "conv-ir"])
def test_every_hidden_parameter_has_its_place(backbone: str) -> None:
    layout = small(backbone).layout
    for padded in (False, True):
        found, position = stacks(layout, padded)
        index = torch.cat([*(stack.index.flatten() for stack in found), torch.tensor([-1])])
        covered = torch.zeros(layout.hidden, dtype=torch.bool)
        for name, slot in layout.slots.items():
            if slot.matrices is not None:
                covered[layout.offsets[name] : layout.offsets[name] + slot.size] = True
        assert torch.equal(index[position][covered], torch.arange(layout.hidden)[covered])
        assert (index[position][~covered] == -1).all()


def test_orthogonalize_makes_singular_values_near_one() -> None:
    matrices = gradients(Layout({"a": Slot((5, 8, 20), 1.0, matrices=(5, 8, 20))}), 0)[: 5 * 160].view(
        5, 8, 20
    )
    values = torch.linalg.svdvals(orthogonalize(matrices, torch.float32))
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_a_bad_step_changes_nothing() -> None:
    layout = Layout(SLOTS)
    vector = layout.initial(0)
    optimizer = Optimizer(layout, lr=0.02, lr_rest=0.01)
    optimizer.step(vector, gradients(layout, 0), torch.tensor(1.0), torch.tensor(0), torch.tensor(True))
    before = [vector.clone(), *(tensor.clone() for tensor in optimizer.state().values())]
    poison = torch.full((layout.size,), torch.nan)
    optimizer.step(vector, poison, torch.tensor(1.0), torch.tensor(1), torch.tensor(False))
    for old, new in zip(before, [vector, *optimizer.state().values()], strict=True):
        assert torch.equal(old, new)
