"""The experts: each knows that its nine cells are a permutation, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary
from factordiff.worlds.sudoku.solver import BOXES, COLUMNS, ROWS, SIDE


class Unit:
    """Nine cells that hold nine different values.

    Given what is filled in, a cell of the unit is uniform over the values that the unit still misses: the exact
    marginal of a uniform permutation. Elsewhere every value is as likely. Two equal values in the unit are no
    permutation; then it is what the unit misses all the same.
    """

    vocabulary = Vocabulary(SIDE)

    def __init__(self, cells: Sequence[int]) -> None:
        self.cells = torch.tensor(cells)

    def encode(self, condition: Any) -> None:
        """Nothing to be told."""
        return None

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """Uniform over the missing values in the unit, over all values elsewhere."""
        cells = self.cells.to(x_t.device)
        inside = x_t[:, cells]
        there = torch.nn.functional.one_hot(inside, SIDE + 1)[..., :SIDE].sum(1) > 0
        missing = torch.where(there, -torch.inf, 0.0)
        said = torch.full((*x_t.shape, SIDE), -math.log(SIDE), device=x_t.device)
        said[:, cells] = (missing - self._log_count(there))[:, None]
        return said

    @staticmethod
    def _log_count(there: Tensor) -> Tensor:
        return (~there).sum(-1, keepdim=True).clamp(min=1).float().log()

    def __repr__(self) -> str:
        return f"Unit({self.cells.tolist()})"


def units() -> dict[str, Unit]:
    """The 27 experts by name: row 1, ..., column 1, ..., box 1, ..."""
    kinds = (("row", ROWS), ("column", COLUMNS), ("box", BOXES))
    return {f"{kind} {number}": Unit(cells) for kind, each in kinds for number, cells in enumerate(each, 1)}
