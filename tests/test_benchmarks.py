"""The quick half of the benchmarks: counts, which no machine can change."""

from __future__ import annotations

import pytest

from benchmarks.bench_sampling import STEPS, TARGETS, passes


@pytest.mark.parametrize(("order", "temperature"), [("confidence", 0.0), ("ancestral", 1.0)])
def test_same_answers_in_fewer_passes_than_the_naive_loop(order: str, temperature: float) -> None:
    counted = passes(order, temperature)
    assert counted["same_answers"]
    assert counted["naive_passes"] == 2 * 64 * STEPS
    assert counted["ratio"] >= TARGETS[order]


def test_one_cell_per_pass_in_confidence_order() -> None:
    assert passes("confidence", 0.0, batch=2)["passes"] == 2 * 2 * 100
