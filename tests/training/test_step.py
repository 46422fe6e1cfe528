"""One step: the same for any division of the batch, its loss by hand, and nothing from a generator."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from factordiff.diffusion.objectives import OBJECTIVES
from factordiff.networks.store import build
from factordiff.training.settings import TrainingSettings
from factordiff.training.step import TrainingStep
from tests.networks.small_networks import stir
from tests.training.runs import NETWORK, SETTINGS
from tests.training.synthetic import Flips


def step(rank: int = 0, world: int = 1, **changes: object) -> TrainingStep:
    settings: TrainingSettings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    network = build("trans-ir", NETWORK)
    stir(network)
    made = TrainingStep(network, Flips(side=3), settings, torch.float32, torch.float32)
    if world > 1:  # a machine's share, without the other machines
        first, last = rank * settings.batch // world, (rank + 1) * settings.batch // world
        made.items = torch.arange(first, last)
    return made


def test_the_global_batch_is_the_same_for_any_number_of_machines() -> None:
    number = torch.tensor(7)
    whole = step().draw(number)
    for world in (2, 3, 4, 6):
        parts = [step(rank, world).draw(number) for rank in range(world)]
        for index, expected in enumerate(whole):
            assert torch.equal(torch.cat([part[index] for part in parts]), expected)


def test_steps_and_seeds_draw_other_batches() -> None:
    batches = [step().draw(torch.tensor(1)), step().draw(torch.tensor(2)), step(seed=1).draw(torch.tensor(1))]
    for a in range(3):
        for b in range(a):
            assert not torch.equal(batches[a][4], batches[b][4])  # x_0
            assert not torch.equal(batches[a][5] == 10, batches[b][5] == 10)  # what is hidden


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_by_hand(objective: str) -> None:
    made = step(objective=objective)
    query, inputs, outputs, present, x_0, x_t, t = made.draw(torch.tensor(0))
    weights = made.network.weights()
    read = made.network.read(weights, inputs, outputs)
    encoded = made.network.encode_with(weights, query, inputs, outputs, present, read)
    p = made.network.logits(weights, x_t, encoded).detach().double().softmax(-1)
    expected = 0.0
    for row in range(6):
        for cell in range(9):
            if x_t[row, cell] != 10:
                continue
            value = int(x_0[row, cell])
            chance = p[row, cell, value]
            if objective == "occupancy":
                chance = p[row, cell, 0] if value == 0 else p[row, cell, 1:].sum()
            counted = 0.0 if objective == "color" and value == 0 else 1.0
            expected -= counted * float(chance.log()) / float(t[row]) / (6 * 9)
    assert float(made.loss(query, inputs, outputs, present, x_0, x_t, t).detach()) == pytest.approx(
        expected, rel=1e-5
    )


def test_a_step_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    step()()
    assert torch.equal(torch.get_rng_state(), before)


def test_the_average_follows_the_weights() -> None:
    made = step(ema=0.9)
    expected = made.network.vector.detach().clone()
    for update in range(15):
        made()
        decay = min(0.9, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * made.network.vector.detach()
    assert torch.allclose(made.ema, expected, atol=1e-6)


def test_the_gradient_is_clipped() -> None:
    """With a tiny limit AdamW's weights still move (it rescales), but the recorded norm is the true one."""
    made, tight = step(clip=1e9), step(clip=1e-3)
    made()
    tight()
    assert float(made.norm_sum) == float(tight.norm_sum) > 1e-3
    ratio = float(tight.optimizer.mean.norm() / made.optimizer.mean.norm())
    assert ratio == pytest.approx(1e-3 / float(made.norm_sum), rel=1e-2)


def test_an_average_that_forgets_at_once_is_the_weights_themselves() -> None:
    made = step(ema=0.0)
    before = made.network.vector.detach().clone()
    for _ in range(15):
        made()
        assert torch.equal(made.ema, made.network.vector)
    assert not torch.equal(made.ema, before)
