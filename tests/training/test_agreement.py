"""The agreement of demonstrations: against a loop, and what it rewards."""

from __future__ import annotations

import math

import torch

from factordiff.networks.store import build
from factordiff.streams import Purpose, uniform
from factordiff.training.agreement import SHARPNESS, agreement_loss


def codes(items: int, frames: int, context: int = 5, key: int = 0) -> torch.Tensor:
    shape = (items, frames, context)
    return uniform(key, Purpose.INIT, torch.arange(math.prod(shape))).view(shape).float() - 0.5


def by_hand(said: torch.Tensor, present: torch.Tensor, batch: int) -> float:
    total = 0.0
    rows = [row for row in range(len(said)) if present[row, 1]]
    unit = [[(code / code.norm()).tolist() for code in said[row, :2]] for row in range(len(said))]
    for side in (0, 1):
        for row in rows:
            score = [
                SHARPNESS * sum(a * b for a, b in zip(unit[row][side], unit[other][1 - side], strict=True))
                for other in rows
            ]
            own = score[rows.index(row)]
            total += (math.log(sum(math.exp(s) for s in score)) - own) / 2
    return total / batch


def test_it_is_the_formula() -> None:
    said = codes(7, 3)
    present = torch.ones(7, 3, dtype=torch.bool)
    present[2, 1:] = False
    assert math.isclose(float(agreement_loss(said, present, 7)), by_hand(said, present, 7), rel_tol=1e-5)


def test_agreeing_demonstrations_that_differ_between_items_cost_least() -> None:
    everyone = torch.ones(4, 2, dtype=torch.bool)
    distinct = torch.eye(4)[:, None].expand(4, 2, 4)
    same_for_all = torch.ones(4, 2, 4)
    crossed = torch.stack([torch.eye(4), torch.eye(4).roll(1, 0)], 1)
    best, indifferent, worst = (
        float(agreement_loss(said, everyone, 4)) for said in (distinct, same_for_all, crossed)
    )
    assert best < 1e-3
    assert math.isclose(indifferent, math.log(4), rel_tol=1e-5)
    assert worst > indifferent


def test_one_demonstration_takes_no_part() -> None:
    said = codes(3, 1).requires_grad_()
    assert agreement_loss(said, torch.ones(3, 1, dtype=torch.bool), 3).item() == 0.0
    pairs = codes(3, 2).requires_grad_()
    loss = agreement_loss(pairs, torch.tensor([[True, False]] * 3), 3)
    (gradient,) = torch.autograd.grad(loss, [pairs])
    assert loss.item() == 0.0
    assert (gradient == 0).all()


def test_a_missing_demonstration_leaves_finite_gradients() -> None:
    said = codes(4, 2).requires_grad_()
    present = torch.tensor([[True, True], [True, False], [True, True], [True, False]])
    (gradient,) = torch.autograd.grad(agreement_loss(said, present, 4), [said])
    assert torch.isfinite(gradient).all()
    assert (gradient[[1, 3]] == 0).all()
    assert (gradient[[0, 2]] != 0).any()


def test_codes_of_a_network_are_its_context_for_one_demonstration() -> None:
    network = build("trans-ir", {"layout": [4, 4], "width": 32, "context": 24, "encoder": 8})
    weights = network.weights()
    frames = (uniform(1, torch.arange(2 * 3 * 16)) * 10).long().view(2, 3, 16)
    read = network.read(weights, frames, frames.flip(-1))
    told = network.codes(weights, read)
    assert told.shape == (2, 3, 24)
    alone = network.codes(weights, network.read(weights, frames[:, 1:2], frames.flip(-1)[:, 1:2]))
    assert torch.allclose(told[:, 1:2], alone, atol=1e-5)
