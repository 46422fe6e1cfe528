"""The learning rate: up, flat, down to zero."""

from __future__ import annotations

import pytest
import torch

from factordiff.training.step import rate_factor


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 0.1), (4, 0.5), (9, 1.0), (50, 1.0), (60, 1.0), (80, 0.5), (99, 0.025), (100, 0.0), (150, 0.0)],
)
def test_warm_up_flat_decay(step: int, expected: float) -> None:
    assert float(rate_factor(torch.tensor(step), 10, 60, 100)) == pytest.approx(expected)


def test_no_warm_up_and_no_decay() -> None:
    assert [float(rate_factor(torch.tensor(s), 0, 100, 100)) for s in (0, 50, 99)] == [1.0, 1.0, 1.0]
