"""A plain constraint solver: the rules that people use, and search where they end.

Values are 0 .. 8, EMPTY where nothing stands. Domains are sets of bits, so that every rule is a few operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import no_type_check

from factordiff.errors import InvalidInput

SIDE, CELLS, EMPTY = 9, 81, 9
ALL = (1 << SIDE) - 1
ROWS = [[9 * r + c for c in range(9)] for r in range(9)]
COLUMNS = [[9 * r + c for r in range(9)] for c in range(9)]
BOXES = [[9 * (r + i) + c + j for i in range(3) for j in range(3)] for r in (0, 3, 6) for c in (0, 3, 6)]
UNITS = [*ROWS, *COLUMNS, *BOXES]
UNITS_OF = [[unit for unit in UNITS if cell in unit] for cell in range(CELLS)]
PEERS = [sorted({other for unit in UNITS_OF[cell] for other in unit} - {cell}) for cell in range(CELLS)]

# What each level may use; a puzzle's difficulty is the first level that solves it. easy: naked singles alone (a cell
# with one value left); medium: with hidden singles (a value with one cell left in a unit); hard: with locked candidates
# and naked pairs as well; expert: none of these, only search.
LEVELS = ("easy", "medium", "hard", "expert")

Grid = Sequence[int]


class Contradiction(Exception):
    """A cell has no value left, or a unit no place for a value."""


class Domains:
    """The values that each cell may still have; setting one takes it from the cell's peers."""

    def __init__(self, grid: Grid) -> None:
        self.left = [ALL] * CELLS
        self.values = [EMPTY] * CELLS
        for cell, value in enumerate(grid):
            if value != EMPTY:
                if not self.left[cell] >> value & 1:
                    raise Contradiction
                self.set(cell, value)

    @no_type_check  # millions of calls: shape checks under pytest would take minutes
    def set(self, cell: int, value: int) -> None:
        """Fill a cell."""
        self.values[cell], self.left[cell] = value, 0
        bit = 1 << value
        for peer in PEERS[cell]:
            self.remove(peer, bit)

    @no_type_check
    def remove(self, cell: int, bits: int) -> bool:
        """Take values from an empty cell; whether that changed anything."""
        if not self.left[cell] & bits:
            return False
        self.left[cell] &= ~bits
        if not self.left[cell]:
            raise Contradiction
        return True

    @property
    def done(self) -> bool:
        """Whether every cell is filled."""
        return EMPTY not in self.values

    def naked_single(self) -> bool:
        """Fill the cells that have one value left."""
        changed = False
        for cell in range(CELLS):
            bits = self.left[cell]
            if bits and bits & (bits - 1) == 0:
                self.set(cell, bits.bit_length() - 1)
                changed = True
        return changed

    def hidden_single(self) -> bool:
        """Fill a value that has one place left in a unit."""
        for unit in UNITS:
            once = twice = 0
            for cell in unit:
                twice |= once & self.left[cell]
                once |= self.left[cell]
            only = once & ~twice
            if only:
                bit = only & -only
                cell = next(cell for cell in unit if self.left[cell] & bit)
                self.set(cell, bit.bit_length() - 1)
                return True
        return False

    def locked(self) -> bool:
        """A value whose places in one unit all lie in another is nowhere else in that one."""
        for unit in UNITS:
            for value in range(SIDE):
                bit = 1 << value
                places = [cell for cell in unit if self.left[cell] & bit]
                if not 2 <= len(places) <= 3:
                    continue
                for other in UNITS_OF[places[0]]:
                    if other is not unit and all(cell in other for cell in places):
                        outside = [self.remove(cell, bit) for cell in other if cell not in places]
                        if any(outside):
                            return True
        return False

    def naked_pair(self) -> bool:
        """Two cells of a unit with the same two values keep them from the others."""
        for unit in UNITS:
            pairs = [cell for cell in unit if self.left[cell].bit_count() == 2]
            for one, other in combinations(pairs, 2):
                if self.left[one] == self.left[other]:
                    bits = self.left[one]
                    removed = [self.remove(cell, bits) for cell in unit if cell not in (one, other)]
                    if any(removed):
                        return True
        return False


def by_rules(grid: Grid, level: int) -> list[int] | None:
    """The grid as far as the rules of a level (0, 1, 2) fill it; None if they find a contradiction."""
    try:
        left = Domains(grid)
        rules = (left.naked_single, left.hidden_single, left.locked, left.naked_pair)[: (1, 2, 4)[level]]
        while not left.done and any(rule() for rule in rules):
            pass
    except Contradiction:
        return None
    return left.values


def solutions(grid: Grid) -> Iterator[list[int]]:
    """Every solution, by singles and search in the cell with the fewest values."""
    try:
        left = Domains(grid)
        while left.naked_single() or left.hidden_single():
            pass
    except Contradiction:
        return
    if left.done:
        yield left.values
        return
    cell = min((c for c in range(CELLS) if left.left[c]), key=lambda c: left.left[c].bit_count())
    for value in range(SIDE):
        if left.left[cell] >> value & 1:
            tried = list(left.values)
            tried[cell] = value
            yield from solutions(tried)


def solution(grid: Grid) -> list[int]:
    """The one solution of a puzzle; a puzzle with none or with several is refused."""
    if len(grid) != CELLS:
        raise InvalidInput(f"puzzle: expected {CELLS} cells, got {len(grid)}")
    found = []
    for one in solutions(grid):
        found.append(one)
        if len(found) == 2:
            cell = next(cell for cell in range(CELLS) if found[0][cell] != found[1][cell])
            raise InvalidInput(
                f"puzzle: expected one solution, got several: row {cell // 9 + 1}, column {cell % 9 + 1} can be "
                f"{found[0][cell] + 1} or {found[1][cell] + 1}; give more cells"
            )
    if not found:
        raise InvalidInput(f"puzzle: it has no solution{_clash(grid)}; check the given cells")
    return found[0]


def _clash(grid: Grid) -> str:
    """Where two given cells contradict each other, if two do."""
    for unit in UNITS:
        for one, other in combinations(unit, 2):
            if grid[one] == grid[other] != EMPTY:
                return (
                    f": {grid[one] + 1} stands in row {one // 9 + 1}, column {one % 9 + 1} and in row "
                    f"{other // 9 + 1}, column {other % 9 + 1}"
                )
    return ""


def difficulty(grid: Grid) -> str:
    """The level of a puzzle: the first that solves it."""
    for level in range(3):
        filled = by_rules(grid, level)
        if filled is not None and EMPTY not in filled:
            return LEVELS[level]
    return LEVELS[3]
