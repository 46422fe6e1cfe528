from __future__ import annotations

import numpy as np
import pytest

from factordiff.arc.artefact import Artefact
from factordiff.arc.grid import to_canvas
from factordiff.arc.symmetry import (
    NAMES,
    SYMMETRIES,
    canvas_table,
    inverse,
    orbit_key,
    transform,
    transformed_shape,
)

GRID = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)
IMAGES = {
    "identity": [[1, 2, 3], [4, 5, 6]],
    "rotate-90": [[3, 6], [2, 5], [1, 4]],
    "rotate-180": [[6, 5, 4], [3, 2, 1]],
    "rotate-270": [[4, 1], [5, 2], [6, 3]],
    "mirror": [[3, 2, 1], [6, 5, 4]],
    "transpose": [[1, 4], [2, 5], [3, 6]],
    "flip": [[4, 5, 6], [1, 2, 3]],
    "anti-transpose": [[6, 3], [5, 2], [4, 1]],
}


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_each_symmetry_is_the_one_its_name_says(symmetry: int) -> None:
    assert transform(GRID, symmetry).tolist() == IMAGES[NAMES[symmetry]]
    assert transformed_shape((2, 3), symmetry) == transform(GRID, symmetry).shape


def test_they_are_a_group() -> None:
    images = [transform(GRID, symmetry).tolist() for symmetry in SYMMETRIES]
    for first in SYMMETRIES:
        after = [images.index(transform(transform(GRID, first), then).tolist()) for then in SYMMETRIES]
        assert sorted(after) == list(SYMMETRIES)
        assert after[inverse(first)] == 0


def test_the_table_moves_canvases_as_grids_move() -> None:
    table = canvas_table()
    for height in range(1, 11):
        for width in range(1, 11):
            grid = (np.arange(height * width, dtype=np.uint8) % 9 + 1).reshape(height, width)
            for symmetry in SYMMETRIES:
                moved = to_canvas(grid)[table[symmetry, height - 1, width - 1]]
                assert np.array_equal(moved, to_canvas(transform(grid, symmetry)))


def test_inverses_restore_every_instance_of_the_data_set(shipped: Artefact) -> None:
    """Both sides of all 120,000 pairs, ragged shapes included."""
    table = canvas_table()
    for side in ("input", "output"):
        canvases = shipped.arrays[f"{side}s"].reshape(-1, 100)
        heights, widths = shipped.arrays[f"{side}_shapes"].reshape(-1, 2).T.astype(np.int64) - 1
        for symmetry in SYMMETRIES:
            moved = np.take_along_axis(canvases, table[symmetry, heights, widths], axis=1)
            turned = (widths, heights) if symmetry % 2 else (heights, widths)
            back = np.take_along_axis(moved, table[inverse(symmetry), *turned], axis=1)
            assert np.array_equal(back, canvases)


def test_an_orbit_has_one_key_and_two_orbits_have_two() -> None:
    other = GRID[:, :1].copy()
    key = orbit_key(GRID, other)
    for symmetry in SYMMETRIES:
        assert orbit_key(transform(GRID, symmetry), transform(other, symmetry)) == key
    # The same grids, but moved by different symmetries: another pair.
    assert orbit_key(GRID, transform(other, 2)) != key
    assert orbit_key(other, GRID) != key
