"""Where two runs part is found, and told apart: rounding, or a real difference."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from factordiff.bench.divergence import RecordingRule, Trajectory, divergences
from factordiff.composition.routing import Routing
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert
from factordiff.sampling.reveal import ByConfidence
from factordiff.vocabulary import Vocabulary

ITEMS, CELLS, VALUES, STEPS = 40, 6, 3, 8


class Rounding:
    """An expert whose log-probabilities depend on the state, and a little on the size of the batch."""

    vocabulary = Vocabulary(VALUES)

    def __init__(self, seed: int, noise: float) -> None:
        self.seed, self.noise = seed, noise

    def encode(self, condition: Condition) -> Tensor:
        return condition.query

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        def wave(scale: float, phase: float = 0.0) -> Tensor:
            cell, value = torch.arange(CELLS)[:, None], torch.arange(VALUES)
            key = (x_t * torch.arange(1, CELLS + 1)).sum(-1) + 7 * encoded[:, 0] + self.seed
            return torch.sin(scale * (key[:, None, None] + 3.0 * cell + 11.0 * value) + phase)

        rounded = wave(2.9, 13.7 * len(x_t))  # another batch, other digits
        return (2 * wave(1.7) + self.noise * rounded).double().log_softmax(-1)


def condition() -> Condition:
    query = torch.arange(ITEMS)[:, None].expand(ITEMS, CELLS).contiguous()
    frames = query[:, None]
    return Condition(query, frames, frames, torch.ones(ITEMS, 1, dtype=torch.bool))


def path(experts: Sequence[Expert], batch: BatchSizes | None = None) -> Trajectory:
    rule = RecordingRule(ByConfidence(STEPS), ITEMS, CELLS, torch.device("cpu"))
    blank = torch.full((ITEMS, CELLS), VALUES)
    drawn = Engine(batch).sample(experts, Routing(), blank, condition(), reveal=rule)
    return Trajectory(drawn.x_0, rule.step)


def test_every_cell_is_noted_once_at_its_step() -> None:
    found = path([Rounding(1, 0.0), Rounding(2, 0.0)], BatchSizes(7))
    quota = [CELLS * (step + 1) // STEPS - CELLS * step // STEPS for step in range(STEPS)]
    counts = torch.stack([(found.step == step).sum(-1) for step in range(STEPS)], 1)
    assert counts.tolist() == [quota] * ITEMS


def test_answers_that_agree_have_nothing_to_trace() -> None:
    experts = [Rounding(1, 0.0), Rounding(2, 0.0)]
    one, other = path(experts), path(experts, BatchSizes(7))
    assert torch.equal(one.step, other.step)
    found = divergences(one, other, (experts, experts), condition(), BatchSizes(7))
    assert len(found.items) == len(found.gap) == 0


@pytest.mark.parametrize("batch", [BatchSizes(7), BatchSizes.fixed(16), BatchSizes.fixed(36)], ids=repr)
def test_what_rounding_turns_is_traced_to_near_ties(batch: BatchSizes) -> None:
    experts = [Rounding(1, 5e-3), Rounding(2, 5e-3)]
    one, other = path(experts), path(experts, batch)
    found = divergences(one, other, (experts, experts), condition(), batch)
    assert found.items.tolist() == (one.x_0 != other.x_0).any(-1).nonzero().squeeze(-1).tolist()
    assert 0 < len(found.items) < ITEMS
    assert found.near_ties.all()
    assert (found.gap >= 0).all()
    assert float(found.gap.max()) < 1.0


def test_another_expert_is_no_near_tie() -> None:
    """A real difference, such as a fault of the savings, does not pass for rounding."""
    experts, others = [Rounding(1, 1e-9), Rounding(2, 1e-9)], [Rounding(1, 1e-9), Rounding(5, 1e-9)]
    found = divergences(path(experts), path(others), (experts, experts), condition(), BatchSizes(7))
    assert len(found.items) > 0
    assert not found.near_ties.any()
