"""Which cells experts are asked about: their numbers, looked up once, before any expert speaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.types import Cells


@dataclass(frozen=True)
class AskedCells:
    """Some cells of a batch of rows, in reading order: row by row, then cell by cell."""

    row: Int[Tensor, " asked"]
    cell: Int[Tensor, " asked"]
    shape: tuple[int, int]  # of the batch: rows, cells

    @classmethod
    def of(cls, cells: Cells) -> AskedCells:
        """A set of cells; how many they are, only the device knows, and it is waited for."""
        row, cell = cells.nonzero().T
        return cls(row, cell, (cells.shape[0], cells.shape[1]))

    @classmethod
    def of_window(cls, window: Int[Tensor, "batch width"], cells: int) -> AskedCells:
        """So many cells of each row, in reading order; nothing is waited for."""
        row = torch.arange(len(window), device=window.device)[:, None].expand_as(window)
        return cls(row.flatten(), window.flatten(), (len(window), cells))

    def among(self, rows: Int[Tensor, " some"], count: int) -> AskedCells:
        """The same in a batch of `count` rows that begins with these, which hold all of them, in their order."""
        return replace(self, row=torch.searchsorted(rows, self.row), shape=(count, self.shape[1]))

    @cached_property
    def places(self) -> Int[Tensor, " asked"]:
        """Their numbers in reading order: row * cells + cell."""
        return self.row * self.shape[1] + self.cell

    @cached_property
    def mask(self) -> Cells:
        """The set of them."""
        rows, cells = self.shape
        nothing = torch.zeros(rows * cells, dtype=torch.bool, device=self.row.device)
        return nothing.index_fill(0, self.places, True).view(rows, cells)
