"""The shapes that cross the library's borders, in one vocabulary.

Dimensions have one word each: `expert`, `batch` (rows of a pass), `cell`, `value`, `item`, `particle`.
"""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor

LARGE = 1024  # values: of more, only what is asked about is computed, chunk by chunk, in float32 where that will do

Tokens = Int[Tensor, "batch cell"]  # values 0..size-1, or the mask id
Cells = Bool[Tensor, "batch cell"]  # a set of cells per row
CellLogProbs = Float[Tensor, "batch cell value"]  # one distribution per cell
ExpertLogProbs = Float[Tensor, "expert batch cell value"]  # one distribution per expert and cell
RoutingMap = Int[Tensor, "batch cell"]  # z: which expert speaks for a cell
ExpertCells = Float[Tensor, "expert batch cell"]  # one number per expert and cell
LogDensities = Float[Tensor, "expert batch"]  # ell_m: log p_m of what each row has revealed
