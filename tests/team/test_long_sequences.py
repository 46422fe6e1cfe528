"""Sequences longer than a window: every hidden cell is filled, with cells on both sides in view."""

from __future__ import annotations

import pytest
import torch

from factordiff.errors import InvalidInput
from factordiff.streams import Purpose, integers
from factordiff.team.infill import infill
from factordiff.team.team import compose
from tests.text.tables import Knows

TEXT = integers(5, 0, Purpose.QUERY, torch.arange(100))


class Watched(Knows):
    """Remembers which windows it was asked about."""

    def __init__(self) -> None:
        super().__init__(TEXT, 5)
        self.asked: list[list[int]] = []

    def log_probs(self, x_t, encoded):  # type: ignore[no-untyped-def]
        self.asked += x_t.tolist()
        return super().log_probs(x_t, encoded)


def hidden(*stretches: tuple[int, int]) -> torch.Tensor:
    x_t = TEXT.clone()
    for first, last in stretches:
        x_t[first:last] = 5
    return x_t


@pytest.mark.parametrize(
    "stretches", [[(10, 14)], [(0, 3), (96, 100)], [(40, 75)], [(0, 100)], [(5, 6), (60, 61)]]
)
def test_it_is_filled_from_start_to_end(stretches: list[tuple[int, int]]) -> None:
    x_t = hidden(*stretches)
    done: list[tuple[int, int]] = []
    found = infill(compose([Watched()]), x_t, 20, on_cell=lambda *how_far: done.append(how_far))
    assert torch.equal(found.x_0[~found.hidden], TEXT[~found.hidden])
    assert not bool((found.x_0 == 5).any())
    if stretches != [(0, 100)]:  # nothing given: nothing to know it by
        assert torch.equal(found.x_0, TEXT)
    assert done[-1] == (int(found.hidden.sum()),) * 2
    assert found.passes > 0


def test_cells_are_decided_with_both_sides_in_view() -> None:
    expert = Watched()
    infill(compose([expert]), hidden((30, 32), (44, 45)), 20)
    first = expert.asked[0]
    assert first == hidden((30, 32), (44, 45))[25:45].tolist()
    again = hidden((44, 45))[39:59].tolist()  # its last quarter was hidden again
    assert again in expert.asked


def test_who_decided() -> None:
    unsure = Knows(TEXT, 5, sure=0.3)
    found = infill(compose([unsure, Knows(TEXT, 5)]), hidden((10, 14)), 20)
    assert found.decided_by.tolist() == [1 if 10 <= cell < 14 else -1 for cell in range(100)]
    mixed = infill(compose([unsure, Knows(TEXT, 5)], "mixture"), hidden((10, 14)), 20)
    assert set(mixed.decided_by.tolist()) == {-1}  # nobody alone


def test_a_window_must_have_room() -> None:
    with pytest.raises(InvalidInput, match="window: expected at least 4 cells, got 3"):
        infill(compose([Watched()]), hidden((1, 2)), 3)
