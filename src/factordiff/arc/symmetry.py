"""The eight symmetries of a rectangle's grid: rotate and flip the ragged grid, then pad.

Symmetry s mirrors the columns if s >= 4 and then turns the grid by s % 4 quarter turns, counter-clockwise.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from factordiff.arc.grid import CELLS, SIDE, Grid, Shape
from factordiff.arc.task import Pair, Task

NAMES = ("identity", "rotate-90", "rotate-180", "rotate-270", "mirror", "transpose", "flip", "anti-transpose")
SYMMETRIES = range(len(NAMES))


def transform(grid: Grid, symmetry: int) -> Grid:
    """The grid under the symmetry; a quarter turn swaps height and width.

    >>> transform(np.array([[1, 2, 3]], dtype=np.uint8), 1).tolist()
    [[3], [2], [1]]
    """
    mirrored = grid[:, ::-1] if symmetry >= 4 else grid
    return np.ascontiguousarray(np.rot90(mirrored, symmetry % 4))


def transform_task(task: Task, symmetry: int) -> Task:
    """The task with every grid under the symmetry: the same rule, seen otherwise."""

    def moved(pair: Pair) -> Pair:
        output = None if pair.output is None else transform(pair.output, symmetry)
        return Pair(transform(pair.input, symmetry), output)

    return Task(task.id, tuple(map(moved, task.demonstrations)), tuple(map(moved, task.tests)))


def inverse(symmetry: int) -> int:
    """The symmetry that undoes this one; every reflection undoes itself."""
    return symmetry if symmetry >= 4 else -symmetry % 4


def transformed_shape(shape: Shape, symmetry: int) -> Shape:
    """The grid's shape under the symmetry."""
    height, width = shape
    return (width, height) if symmetry % 2 else (height, width)


def orbit_key(pair_input: Grid, pair_output: Grid) -> bytes:
    """What the eight images of a pair have in common: the smallest of their spellings.

    Both grids are moved by the same symmetry, so two pairs share a key exactly if one symmetry turns one pair
    into the other.
    """
    return min(
        _spelling(transform(pair_input, symmetry)) + _spelling(transform(pair_output, symmetry))
        for symmetry in SYMMETRIES
    )


def _spelling(grid: Grid) -> bytes:
    return bytes(grid.shape) + grid.tobytes()


def canvas_table() -> Int64[np.ndarray, "symmetry height width cell"]:
    """Where each canvas cell comes from, for every symmetry and every shape 1x1 .. 10x10.

    `canvas[table[s, height - 1, width - 1]]` is the canvas of the transformed grid. Padding is taken from the
    last cell: where there is any padding that cell is padding too, hence 0.
    """
    cells = np.arange(CELLS).reshape(SIDE, SIDE)
    table = np.full((len(NAMES), SIDE, SIDE, SIDE, SIDE), CELLS - 1, dtype=np.int64)
    for symmetry in SYMMETRIES:
        for height in range(1, SIDE + 1):
            for width in range(1, SIDE + 1):
                rows, columns = transformed_shape((height, width), symmetry)
                moved = np.rot90(cells[:height, :width][:, :: -1 if symmetry >= 4 else 1], symmetry % 4)
                table[symmetry, height - 1, width - 1, :rows, :columns] = moved
    return table.reshape(len(NAMES), SIDE, SIDE, CELLS)


def shape_table() -> Int64[np.ndarray, "symmetry height width 2"]:
    """Height and width of the transformed grid, for every symmetry and every shape 1x1 .. 10x10."""
    sides = range(1, SIDE + 1)
    shapes = [[[transformed_shape((h, w), s) for w in sides] for h in sides] for s in SYMMETRIES]
    return np.array(shapes, dtype=np.int64)
