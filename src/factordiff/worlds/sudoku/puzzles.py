"""Puzzles of four difficulties, each a pure function of (seed, split, number)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import torch

from factordiff.errors import DataError, InvalidInput
from factordiff.files import read_regular
from factordiff.streams import uniform
from factordiff.worlds.sudoku.solver import (
    CELLS,
    EMPTY,
    LEVELS,
    Contradiction,
    Domains,
    by_rules,
    difficulty,
    solution,
    solutions,
)

Puzzle = tuple[str, list[int], list[int]]  # its difficulty, the cells as they are given, and the solution
SYMBOLS = "123456789.0"  # in a file; the last two are empty cells
SPLITS = {"validation": 1, "test": 2}


def shuffled(count: int, *key: int) -> list[int]:
    """0 .. count-1 in an order that belongs to the key."""
    return uniform(*key, torch.arange(count)).argsort(stable=True).tolist()


def full_grid(*key: int) -> list[int]:
    """A filled grid: cells with the fewest values first, values in the key's order, and back where it ends."""

    def fill(left: Domains, depth: int) -> list[int] | None:
        if left.done:
            return left.values
        cell = min((c for c in range(CELLS) if left.left[c]), key=lambda c: left.left[c].bit_count())
        for value in shuffled(9, *key, depth):
            if left.left[cell] >> value & 1:
                tried = list(left.values)
                tried[cell] = value
                try:
                    found = fill(Domains(tried), depth + 1)
                except Contradiction:
                    found = None
                if found is not None:
                    return found
        return None

    found = fill(Domains([EMPTY] * CELLS), 0)
    assert found is not None  # every empty grid can be filled
    return found


@lru_cache(maxsize=2_048)
def puzzle(difficulty: str, *key: int) -> tuple[list[int], list[int]]:
    """A puzzle of exactly that difficulty and its solution.

    Cells are emptied in the key's order as long as the rules of the level still solve it (for `expert`, as long as
    the solution is the only one); a puzzle that an easier level solves is thrown away.
    """
    level = LEVELS.index(difficulty)
    for attempt in range(1_000):
        answer = full_grid(*key, attempt)
        grid = list(answer)
        for cell in shuffled(CELLS, *key, attempt, 99):
            value, grid[cell] = grid[cell], EMPTY
            if not _solved(grid, level):
                grid[cell] = value
        if level == 0 or not _solved(grid, level - 1):
            return grid, answer
    raise AssertionError(f"no {difficulty} puzzle in 1,000 attempts")


def _solved(grid: list[int], level: int) -> bool:
    if level < 3:
        filled = by_rules(grid, level)
        return filled is not None and EMPTY not in filled
    found = solutions(grid)
    next(found)
    return next(found, None) is None


def puzzles(split: str, count: int, seed: int = 0) -> list[Puzzle]:
    """The first puzzles of a split, the difficulties in turn."""
    found = []
    for number in range(count):
        level = LEVELS[number % len(LEVELS)]
        found.append((level, *puzzle(level, seed, SPLITS[split], number)))
    return found


def read_puzzles(path: Path) -> list[Puzzle]:
    """The puzzles of a file, one in a line: 81 digits row by row, a dot or 0 where nothing stands."""
    found: list[Puzzle] = []
    lines = read_regular(path).decode(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        for column, symbol in enumerate(line.rstrip(), 1):
            if symbol not in SYMBOLS:
                raise DataError(
                    f"{path}, line {number}, column {column}: expected a digit, or a dot where nothing stands, got "
                    f"{symbol!r}"
                )
        grid = [min(SYMBOLS.index(symbol), EMPTY) for symbol in line.rstrip()]
        if not grid:
            continue
        try:
            answer = solution(grid)
        except InvalidInput as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        found.append((difficulty(grid), grid, answer))
    if not found:
        raise DataError(f"{path}: expected puzzles of 81 digits, one in a line, got none")
    return found
