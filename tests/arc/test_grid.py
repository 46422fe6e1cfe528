from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factordiff.arc.grid import from_canvas, parse_grid, to_canvas, to_rows
from factordiff.errors import DataError, InvalidInput

sides = st.integers(1, 10)


@st.composite
def grids(draw: st.DrawFn) -> np.ndarray:
    shape = draw(sides), draw(sides)
    return np.array(
        draw(st.lists(st.integers(0, 9), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])),
        dtype=np.uint8,
    ).reshape(shape)


@given(grids())
def test_canvas_and_back(grid: np.ndarray) -> None:
    canvas = to_canvas(grid)
    assert np.array_equal(from_canvas(canvas, grid.shape), grid)
    assert canvas.sum() == grid.sum(), "everything outside the grid is 0"


@given(grids())
def test_rows_and_back(grid: np.ndarray) -> None:
    assert np.array_equal(parse_grid(to_rows(grid), "here"), grid)


def test_the_canvas_is_row_major_with_padding_below_and_right() -> None:
    canvas = to_canvas(np.array([[1, 2], [3, 4]], dtype=np.uint8))
    assert {cell: canvas[cell] for cell in np.flatnonzero(canvas)} == {0: 1, 1: 2, 10: 3, 11: 4}


@pytest.mark.parametrize("color", [-1, 10, 1.5, True, "3", None, [1], 1e400])
def test_bad_colors_are_named_with_their_cell(color: object) -> None:
    with pytest.raises(DataError, match=r"f.json: task x, train pair 0, input, cell \(row 1, column 0\)"):
        parse_grid([[0, 1], [color, 1]], "f.json: task x, train pair 0, input")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1], [2]], "row 1: expected 2 cells as in row 0, got 1"),
        ([], "expected a list of rows, at least one"),
        ([[]], "row 0: expected a list of colors, at least one"),
        ([[0], 7], "row 1: expected a list of colors"),
        ({"a": 1}, "expected a list of rows"),
        ("0123", "expected a list of rows"),
        ([[0] * 31], "1x31 cells; ARC grids have at most 30x30"),
        ([[0]] * 31, "31x1 cells; ARC grids have at most 30x30"),
    ],
)
def test_bad_grids_are_refused(rows: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_grid(rows, "here")


def test_a_grid_over_ten_is_arc_but_has_no_canvas() -> None:
    grid = parse_grid([[0] * 11] * 3, "here")
    with pytest.raises(InvalidInput, match="task t, test 0: 3x11 cells, expected at most 10x10"):
        to_canvas(grid, "task t, test 0")


@pytest.mark.parametrize("shape", [(0, 3), (3, 11)])
def test_a_canvas_has_no_grid_of_an_impossible_shape(shape: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="shape"):
        from_canvas(np.zeros(100, dtype=np.uint8), shape)
