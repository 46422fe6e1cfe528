"""Sudoku: the experts against enumerated permutations, the solver's levels, and what a product can do."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
import torch

from factordiff import compare
from factordiff.errors import DataError, InvalidInput
from factordiff.worlds.catalogue import compare_world, world
from factordiff.worlds.metric import EXACT
from factordiff.worlds.sudoku import puzzles as maker
from factordiff.worlds.sudoku.puzzles import full_grid, puzzle, puzzles
from factordiff.worlds.sudoku.solver import (
    EMPTY,
    LEVELS,
    UNITS,
    by_rules,
    difficulty,
    solution,
    solutions,
)  # fmt: skip
from factordiff.worlds.sudoku.units import Unit, units
from factordiff.worlds.sudoku.world import Sudoku

# Solved by hand in newspapers; the second one's first step is already a hidden single.
KNOWN = (
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    "000000907000420180000705026100904000050000040000507009920108000034059000507000000",
)


def read_puzzle(digits: str) -> list[int]:
    return [int(digit) - 1 if digit in "123456789" else EMPTY for digit in digits]


def test_a_unit_is_the_marginal_of_a_permutation() -> None:
    cells = UNITS[20]
    unit = Unit(cells)
    x_t = torch.full((1, 81), EMPTY)
    given = dict(zip(cells[:6], (4, 0, 8, 2, 7, 1), strict=True))
    for cell, value in given.items():
        x_t[0, cell] = value
    left = [p for p in permutations(range(9)) if all(p[cells.index(c)] == v for c, v in given.items())]
    probs = unit.log_probs(x_t, None).exp()[0]
    for place, cell in enumerate(cells):
        if cell not in given:
            share = torch.tensor([sum(p[place] == v for p in left) / len(left) for v in range(9)])
            torch.testing.assert_close(probs[cell], share)
    outside = [cell for cell in range(81) if cell not in cells]
    torch.testing.assert_close(probs[outside], torch.full((72, 9), 1 / 9))


def test_there_are_27_and_each_cell_is_in_three() -> None:
    each = units()
    assert len(each) == 27
    count = torch.zeros(81)
    for unit in each.values():
        count[unit.cells] += 1
    assert (count == 3).all()


def test_the_solver_finds_what_the_rules_allow() -> None:
    for text in KNOWN:
        grid = read_puzzle(text)
        answer = solution(grid)
        assert all(sorted(answer[cell] for cell in unit) == list(range(9)) for unit in UNITS)
        assert all(answer[cell] == value for cell, value in enumerate(grid) if value != EMPTY)
    assert [difficulty(read_puzzle(text)) for text in KNOWN] == ["easy", "medium"]


def test_rules_only_fill_what_is_right_and_a_level_fills_no_less() -> None:
    for _, grid, answer in puzzles("test", 4):
        before = 0
        for level in range(3):
            filled = by_rules(grid, level)
            assert filled is not None
            assert all(value in (EMPTY, answer[cell]) for cell, value in enumerate(filled))
            assert sum(value != EMPTY for value in filled) >= before
            before = sum(value != EMPTY for value in filled)


def test_puzzles_are_of_their_difficulty_unique_and_always_the_same() -> None:
    made = puzzles("test", 4)
    assert [level for level, _, _ in made] == list(LEVELS)
    for level, grid, answer in made:
        assert difficulty(grid) == level
        assert list(solutions(grid)) == [answer]
    assert puzzle("easy", 0, maker.SPLITS["test"], 0) == made[0][1:]
    assert full_grid(0, 1) != full_grid(0, 2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("." * 81, "expected one solution, got several: row 8, column 3 can be 2 or 8"),
        ("11" + "." * 79, "no solution: 1 stands in row 1, column 1 and in row 1, column 2"),
        ("12345678." + "........9" + "." * 63, "no solution"),
        ("123", "expected 81 cells, got 3"),
    ],
)
def test_bad_puzzles_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        solution(read_puzzle(text))


def test_puzzles_of_ones_own_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("\n".join((KNOWN[0], "", KNOWN[1].replace("0", "."))) + "\n")
    table = compare_world(Sudoku(file), "product")
    assert "sudoku, test. 2 queries in 2 clusters" in table.caption()
    solved = {measure.name: table["product"].value(measure) for measure in table.measures}
    assert (solved["easy"], solved["medium"]) == (1.0, 0.0)
    assert table["search"].value(table.main) == table["naked and hidden singles"].value(table.main) == 1.0
    assert table["naked singles"].value(table.main) == 0.5
    assert Sudoku(file).data() != Sudoku().data()
    assert Sudoku(file).queries("validation", 2).clusters == Sudoku().queries("validation", 2).clusters


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("." * 81, "line 2: puzzle: expected one solution, got several"),
        (
            "11" + "." * 79,
            "line 2: puzzle: it has no solution: 1 stands in row 1, column 1 and in row 1, column 2",
        ),
        ("12", "line 2: puzzle: expected 81 cells, got 2"),
        ("1x" + "." * 79, "line 2, column 2: expected a digit, or a dot where nothing stands, got 'x'"),
    ],
)
def test_a_bad_puzzle_of_a_file_is_said(line: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(f"{KNOWN[0]}\n{line}\n")
    with pytest.raises(DataError, match=sentence):
        compare_world(Sudoku(file), "product")
    file.write_text("\n")
    with pytest.raises(DataError, match="expected puzzles of 81 digits, one in a line, got none"):
        compare_world(Sudoku(file), "product")


def test_products_solve_every_easy_puzzle_and_routing_none() -> None:
    sudoku = world("sudoku")
    methods = "product,routing,product[reveal=product:0.99+repair:0.5]"
    table = compare_world(sudoku, methods, limit=4)
    easy = table.measures[1]
    assert easy.name == "easy"
    assert table["product"].value(easy) == 1.0
    assert table["product[reveal=product:0.99+repair:0.5]"].value(easy) == 1.0
    assert table["routing"].value(table.main) == 0.0
    assert table["naked singles"].value(easy) == 1.0
    assert table["search"].value(table.main) == 1.0
    assert table["naked and hidden singles"].value(table.measures[2]) == 1.0
    assert "the first 4 of 400" in table.caption()


@pytest.mark.slow
def test_products_solve_all_easy_puzzles() -> None:
    # Every fourth puzzle of the test list is an easy one.
    made = [puzzle("easy", 0, maker.SPLITS["test"], number) for number in range(0, 400, 4)]
    x_t, x_0 = (torch.tensor([one[place] for one in made]) for place in (0, 1))
    table = compare(units(), "product", (x_t, x_0), EXACT)
    assert table["product"].value(EXACT.main) == 1.0
