"""A step before values are drawn: who says what, and which cells will be revealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composed
from factordiff.state import SamplerState
from factordiff.types import Cells


@dataclass(frozen=True)
class Proposal:
    """What is known before values are drawn: who says what, and which cells will be revealed."""

    state: SamplerState
    candidates: Cells
    log_probs: Any  # ExpertLogProbs, or, of a large vocabulary, `experts.cell_outputs.CellOutputs`
    passes: Int[Tensor, " batch"]
    composed: Composed  # of a large vocabulary without values: its distributions are not kept
    log_doubt: Float[Tensor, "batch cell"]
    cells: Cells
    at_most: int | None = None  # so many cells, of all rows, if that was known before the experts spoke
    kept: Composed | None = None  # of a large vocabulary that was one chunk: a row for each cell asked about
