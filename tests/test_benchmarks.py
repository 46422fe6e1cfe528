"""The quick half of the benchmarks: counts, which no machine can change."""

from __future__ import annotations

import pytest
import torch

from benchmarks.bench_language import Blocks, beside_models
from benchmarks.bench_sampling import STEPS, TARGETS, passes
from benchmarks.llada_shape import SHAPES, LladaShaped


@pytest.mark.parametrize(("order", "temperature"), [("confidence", 0.0), ("ancestral", 1.0)])
def test_same_answers_in_fewer_passes_than_the_naive_loop(order: str, temperature: float) -> None:
    counted = passes(order, temperature)
    assert counted["same_answers"]
    assert counted["naive_passes"] == 2 * 64 * STEPS
    assert counted["ratio"] >= TARGETS[order]


def test_one_cell_per_pass_in_confidence_order() -> None:
    assert passes("confidence", 0.0, batch=2)["passes"] == 2 * 2 * 100


def test_models_of_a_shape_are_measured_beside_their_composition() -> None:
    cpu = torch.device("cpu")
    models = [LladaShaped(SHAPES["tiny"], seed, cpu, torch.float32) for seed in (1, 2)]
    row = beside_models(models, cpu, 2, "routing", 1, Blocks(positions=12, length=4, steps=2))
    assert row["parameters"] == 2 * 2000 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128)
    assert row["step_s"] > 0
    assert row["passes_s"] > 0
    x_t, asked = torch.full((2, 12), 2000), torch.arange(24).view(2, 12) % 5 == 0
    everywhere = models[0].log_probs(x_t, None)
    assert torch.allclose(models[0].log_probs_at(x_t, None, asked), everywhere[asked], atol=1e-5)
    assert (everywhere[..., SHAPES["tiny"].mask] == -torch.inf).all()


def test_eight_billion_parameters_are_eight_billion() -> None:
    shape = SHAPES["llada-8b"]
    layer = 4 * shape.width**2 + 3 * shape.width * shape.inner
    assert 2 * shape.tokens * shape.width + shape.layers * layer == pytest.approx(8.0e9, rel=0.01)
