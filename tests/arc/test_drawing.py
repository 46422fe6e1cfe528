from __future__ import annotations

import numpy as np
import pytest

from factordiff.arc.drawing import PALETTE, contact_sheets, draw_grid, draw_pairs
from factordiff.errors import InvalidInput

GRID = np.array([[0, 1, 2], [3, 4, 5]], dtype=np.uint8)


def test_every_cell_shows_its_color() -> None:
    picture = draw_grid(GRID, cell=8)
    assert picture.size == (3 * 8 + 1, 2 * 8 + 1)
    for row in range(2):
        for column in range(3):
            assert picture.getpixel((column * 8 + 4, row * 8 + 4)) == PALETTE[GRID[row, column]]
    with pytest.raises(InvalidInput, match="cell"):
        draw_grid(GRID, cell=2)


def test_the_ten_colors_differ() -> None:
    assert len(set(PALETTE)) == 10


def test_pairs_stand_side_by_side_input_above_output() -> None:
    wide = np.full((1, 9), 7, dtype=np.uint8)
    picture = draw_pairs("a title", [(GRID, wide), (wide, GRID)], cell=8)
    colors = {color for _, color in picture.getcolors(maxcolors=10_000)}
    assert {PALETTE[color] for color in (0, 1, 2, 3, 4, 5, 7)} <= colors
    assert picture.width >= 2 * (9 * 8 + 1)


def test_120_tasks_make_five_pages() -> None:
    full = np.full((10, 10), 9, dtype=np.uint8)
    pages = contact_sheets([(f"task {number}", full, GRID) for number in range(120)])
    assert len(pages) == 5
    cells = sum(count for count, color in pages[0].getcolors(maxcolors=10_000) if color == PALETTE[9])
    assert cells == 24 * 100 * 11 * 11, "24 full grids on a page, none cut off or covered"
