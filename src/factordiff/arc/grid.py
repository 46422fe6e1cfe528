"""Ragged grids and the canvas they live on.

A grid is a small array of colors 0..9. The canvas is 10x10, row-major (cell = row * 10 + column), filled up
with color 0 at the bottom and on the right; accuracy counts all its cells, so background includes padding.
The true shape always travels beside the canvas.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from factordiff.errors import DataError, InvalidInput
from factordiff.schema.bound import shown
from factordiff.vocabulary import Vocabulary

SIDE = 10
CELLS = SIDE * SIDE
COLORS = Vocabulary(10)
LONGEST_SHOWN = 40  # characters of what is no grid, in a sentence
ARC_SIDE = 30  # the largest grid of ARC; larger is not ARC at all

Shape = tuple[int, int]
Grid = UInt8[np.ndarray, "_row _column"]
Canvas = UInt8[np.ndarray, "_cell"]


def check_colors(names: Sequence[str], vocabulary: Vocabulary) -> None:
    """Refuse experts of other values before they are asked about grids."""
    if vocabulary != COLORS:
        raise InvalidInput(
            f"experts: {', '.join(names)} know {vocabulary.size} values, the grids of ARC have {COLORS.size}; ask them "
            "about cells of their own: `Team.sample`, or `factordiff fit` and `diagnose` with --data"
        )


def parse_grid(rows: object, where: str) -> Grid:
    """The grid that a JSON value spells, or a `DataError` that names the place and the first bad cell.

    >>> parse_grid([[0, 3], [3, 0]], "example").tolist()
    [[0, 3], [3, 0]]
    """
    if not isinstance(rows, list | tuple) or not rows:
        raise DataError(f"{where}: expected a list of rows, at least one, got {shown(rows, LONGEST_SHOWN)}")
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple) or not row:
            raise DataError(
                f"{where}, row {number}: expected a list of colors, at least one, got {shown(row, LONGEST_SHOWN)}"
            )
        if len(row) != len(rows[0]):
            raise DataError(
                f"{where}, row {number}: expected {len(rows[0])} cells as in row 0, got {len(row)}; "
                "a grid is a rectangle"
            )
    if len(rows) > ARC_SIDE or len(rows[0]) > ARC_SIDE:
        raise DataError(
            f"{where}: {len(rows)}x{len(rows[0])} cells; ARC grids have at most {ARC_SIDE}x{ARC_SIDE}"
        )
    for number, row in enumerate(rows):
        for column, color in enumerate(row):
            # bool is an int in Python, and true is not a color.
            if type(color) is not int or not 0 <= color < COLORS.size:
                raise DataError(
                    f"{where}, cell (row {number}, column {column}): expected a whole number 0..9, "
                    f"got {shown(color, LONGEST_SHOWN)}"
                )
    return np.array(rows, dtype=np.uint8)


def fits(grid: Grid) -> bool:
    """Whether the grid fits the 10x10 canvas."""
    return max(grid.shape) <= SIDE


def to_canvas(grid: Grid, where: str = "grid") -> Canvas:
    """The grid in the top left corner of a canvas of zeros."""
    height, width = grid.shape
    if not fits(grid):
        raise InvalidInput(
            f"{where}: {height}x{width} cells, expected at most {SIDE}x{SIDE}; "
            "the experts work on this canvas, larger tasks cannot be given to them"
        )
    canvas = np.zeros((SIDE, SIDE), dtype=np.uint8)
    canvas[:height, :width] = grid
    return canvas.reshape(CELLS)


def from_canvas(canvas: Canvas, shape: Shape) -> Grid:
    """The grid of that shape in the top left corner of the canvas."""
    height, width = int(shape[0]), int(shape[1])
    if canvas.shape != (CELLS,):
        raise InvalidInput(f"canvas: expected {CELLS} cells, got an array of shape {canvas.shape}")
    if not (1 <= height <= SIDE and 1 <= width <= SIDE):
        raise InvalidInput(f"shape: expected 1x1 to {SIDE}x{SIDE}, got {height}x{width}")
    return canvas.reshape(SIDE, SIDE)[:height, :width].copy()


def to_rows(grid: Grid) -> list[list[int]]:
    """The grid as JSON spells it."""
    rows: list[list[int]] = grid.tolist()
    return rows
