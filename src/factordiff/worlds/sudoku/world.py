"""The world where products must win: every expert forbids what it knows to be wrong, and nobody is wrongly sure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.worlds.metric import Filled, Measure, Metric, Ratio, cells, exact
from factordiff.worlds.queries import Queries
from factordiff.worlds.sudoku.puzzles import Puzzle, puzzles, read_puzzles
from factordiff.worlds.sudoku.solver import LEVELS, SIDE, by_rules, solution
from factordiff.worlds.sudoku.units import units
from factordiff.worlds.world import Experts, World, checked_limit

SIZES = {"validation": 80, "test": 400}
DATA = "sudoku-1, seed 0"  # changes when puzzles or their grading do


def score(filled: Filled) -> dict[str, Ratio]:
    """Solved puzzles, of all and of each difficulty, and right cells."""
    solved, each = exact(filled)
    found = {"solved": (solved, each), "cells": cells(filled)}
    for level in LEVELS:
        of_level = filled.queries.parts[level].any(-1).double()
        found[level] = (solved * of_level, of_level)
    return found


class Sudoku(World):
    """27 exact experts, M = 27 in one loop; a product solves what naked singles solve and then has to guess.

    `puzzles` is a file of one's own, which are then the test puzzles.
    """

    name = "sudoku"
    tests = "27 exact experts that are only right together: products must win, routing has nobody to route to"
    metric = Metric((Measure("solved"), *map(Measure, LEVELS), Measure("cells")), score)
    methods = (
        "mixture", "product", "geometric-mean", "routing", "soft-routing",
        "product[reveal=product:0.99+repair:0.5]", "fkc[particles=8]", "fkc[particles=64]", "oracle",
    )  # fmt: skip
    factors = ("pixel", "row", "column", "block:3x3", "whole")
    layout = (SIDE, SIDE)
    batch = 100

    def __init__(self, puzzles: Path | None = None) -> None:
        self.file = puzzles
        self._own: list[Puzzle] | None = None

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many puzzles each split has."""
        return SIZES if self.file is None else {**SIZES, "test": len(self._read())}

    def _read(self) -> list[Puzzle]:
        if self._own is None:
            assert self.file is not None
            self._own = read_puzzles(self.file)
        return self._own

    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """The rows, columns and boxes."""
        each = units()
        return Experts(each, ["full"] * len(each), dict.fromkeys(each, "exact"))

    def queries(self, split: str, limit: int | None = None) -> Queries:
        """Puzzles, the four difficulties in turn; each is its own cluster."""
        count = checked_limit(split, limit, self.sizes)
        own = self.file is not None and split == "test"
        made = self._read()[:count] if own else puzzles(split, count)
        x_t, x_0 = (torch.tensor([one[place] for one in made]) for place in (1, 2))
        level = [difficulty for difficulty, _, _ in made]
        parts = {
            name: torch.tensor([one == name for one in level])[:, None].expand_as(x_t) for name in LEVELS
        }
        return Queries(x_t, x_0, tuple(f"{split} {number}" for number in range(len(made))), parts=parts)

    def data(self) -> str:
        """Which puzzles."""
        return DATA if self.file is None else hashlib.sha256(self.file.read_bytes()).hexdigest()

    def references(self, queries: Queries) -> dict[str, Int[Tensor, "query cell"]]:
        """A plain constraint solver, level by level; the last one searches."""
        names = ("naked singles", "naked and hidden singles", "and locked candidates, pairs")
        found = {}
        for level, name in enumerate(names):
            filled = [by_rules(grid, level) or grid for grid in queries.x_t.tolist()]
            found[name] = torch.tensor(filled)
        found["search"] = torch.tensor([solution(grid) for grid in queries.x_t.tolist()])
        return found
