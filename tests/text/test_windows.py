"""The windows that things are measured with."""

from __future__ import annotations

import numpy as np
import torch

from factordiff.text.corpus import Text
from factordiff.text.windows import hidden_cells, mixed_windows


def text() -> Text:
    """Three files of two packages; prose in stretches."""
    cells = (np.arange(4_000) % 96).astype(np.uint8)
    prose = (np.arange(4_000) // 100) % 3 == 0
    return Text(cells, prose, np.array([0, 1_500, 1_530, 4_000]), np.array([4, 4, 9], np.int16))


def test_windows_hold_both_kinds_and_lie_in_one_file() -> None:
    found = mixed_windows(text(), 100, length=64)
    prose = text().prose
    expected = {
        start
        for begin, end in ((0, 1_500), (1_500, 1_530), (1_530, 4_000))
        for start in range(begin, end - 63, 64)
        if 0.2 <= prose[start : start + 64].mean() <= 0.8
    }
    places = {}
    for start in expected:
        places[
            tuple(text().cells[start : start + 64].tolist()), tuple(prose[start : start + 64].tolist())
        ] = start
    shown = [
        places[tuple(row.tolist()), tuple((owner == 0).tolist())]
        for row, owner in zip(found.x_0, found.owner, strict=True)
    ]
    assert len(found) == len(expected)
    assert {start // 1 for start in shown} <= expected
    assert set(found.package.tolist()) == {4, 9}
    assert (found.file == 2).sum() == (found.package == 9).sum()


def test_packages_take_turns_and_a_short_list_begins_the_long_one() -> None:
    long, short = mixed_windows(text(), 100, length=64), mixed_windows(text(), 6, length=64)
    assert torch.equal(long.x_0[:6], short.x_0)
    assert short.package.tolist().count(4) == short.package.tolist().count(9) == 3


def test_more_hidden_cells_hold_the_fewer() -> None:
    found = mixed_windows(text(), 100, length=64)
    few, many = hidden_cells(found, 0.15), hidden_cells(found, 0.5)
    assert not bool((few & ~many).any())
    assert abs(float(few.float().mean()) - 0.15) < 4 * (0.15 * 0.85 / few.numel()) ** 0.5
    assert torch.equal(hidden_cells(found[:3], 0.15), few[:3])
