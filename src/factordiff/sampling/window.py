"""A fixed number of cells of each row that hold a step's candidates: no shape then depends on where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from factordiff.state import SamplerState


@dataclass(frozen=True)
class Window:
    """Which `width` cells of each row hold every candidate of its next step, which reveals at most `most` of them.

    Both numbers are known before a run begins. So a step over the window alone can be recorded, and nobody need look
    whether a row is full while it cannot be.
    """

    width: int
    most: int
    cells: Callable[[SamplerState], Int[Tensor, "batch width"]]  # distinct, in reading order
