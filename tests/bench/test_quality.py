"""Equal quality is three demands; each can fail alone."""

from __future__ import annotations

import numpy as np
import pytest

from factordiff.bench.curve import Point, choice
from factordiff.bench.quality import Quality

TASKS = np.repeat(np.arange(100), 100)  # 10,000 queries
RIGHT = np.arange(10_000) % 100 < 90


def changed(*, lost: list[int], won: list[int]) -> np.ndarray:
    ours = RIGHT.copy()
    ours[lost], ours[won] = False, True
    return ours


@pytest.mark.parametrize(
    ("lost", "won", "equal"),
    [
        ([], [], True),
        # as many lost as won, each in its own task
        ([100 * task for task in range(40)], [100 * task + 95 for task in range(40, 80)], True),
        # 0.2 points fewer, which a test sees as well
        ([100 * task for task in range(20)], [], False),
        # 0.2 points fewer among so many changes that a test sees nothing
        (
            [100 * task + cell for task in range(100) for cell in (0, 1)],
            [100 * task + 95 for task in range(100)] + [100 * task + 96 for task in range(80)],
            False,
        ),
        # 0.1 points, but every change is a loss
        ([100 * task for task in range(10)], [], False),
        # as many won as lost, but one task pays with four
        ([0, 1, 2, 3], [195, 295, 395, 495], False),
        ([0, 1, 2], [195, 295, 395], True),
    ],
)  # fmt: skip
def test_equal_quality(lost: list[int], won: list[int], equal: bool) -> None:
    found = Quality.of(changed(lost=lost, won=won), RIGHT, TASKS)
    assert found.exact - found.exact_of_the_loop == pytest.approx((len(won) - len(lost)) / 10_000)
    assert found.equal is equal


def test_the_choice_is_the_cheapest_of_equals_with_room_to_spare() -> None:
    points = [
        Point("confidence:128", 0.9, 1.0, 200.0, equal=True),
        Point("margin:0.5", 0.7, 1.0, 2.0),
        Point("margin:0.6", 0.9, 1.0, 2.1, largest_drop=0.016, equal=True),
        Point("margin:0.7", 0.899, 1.0, 2.2, equal=True),
        Point("margin:0.8", 0.901, 1.0, 2.3, equal=True),
        Point("margin:0.9", 0.89925, 1.0, 3.0, largest_drop=0.015, equal=True),
        Point("entropy:1", 0.9, 1.0, 4.0, equal=True),
    ]
    assert choice(points).rule == "margin:0.9"
