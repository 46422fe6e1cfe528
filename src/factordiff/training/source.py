"""Where batches come from: the trainer knows no data set."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from factordiff.experts.condition import Condition
from factordiff.types import Tokens


@runtime_checkable
class Source(Protocol):
    """Training batches as a pure function of (seed, step, item), and a fixed validation set.

    `draw` must not depend on how many items are asked for together, so that any number of machines sees the
    same global batch; on a GPU it must not wait for the device, so that a whole step can be recorded.
    """

    @property
    def digest(self) -> str:
        """The data set's hash: a checkpoint continues only on the data it came from."""
        ...

    def draw(self, seed: int, step: Int[Tensor, ""], items: Int[Tensor, " item"]) -> tuple[Condition, Tokens]:
        """The conditions and clean grids of these items of a step's global batch."""
        ...

    def validation(self, items: int) -> tuple[Condition, Tokens]:
        """The first items of the validation set, always the same."""
        ...
