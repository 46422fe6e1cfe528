"""Where batches come from: the trainer knows no data set."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from factordiff.types import Tokens
from factordiff.vocabulary import Vocabulary


@runtime_checkable
class Source(Protocol):
    """Training batches as a pure function of (seed, step, item), and a fixed validation set.

    `draw` must not depend on how many items are asked for together, so that any number of machines sees the
    same global batch; on a GPU it must not wait for the device, so that a whole step can be recorded.

    A condition is whatever the network's `encode` takes, one for each item, with a length, slices and `to(device)`;
    None where there is nothing to be told.
    """

    @property
    def digest(self) -> str:
        """The data set's hash: a checkpoint continues only on the data it came from."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The values of a cell."""

    @property
    def cells(self) -> int:
        """How many cells an item has."""

    def draw(self, seed: int, step: Int[Tensor, ""], items: Int[Tensor, " item"]) -> tuple[Any, Tokens]:
        """The conditions and clean cells of these items of a step's global batch, on the device of `items`."""

    def validation(self, items: int) -> tuple[Any, Tokens]:
        """The first items of the validation set, always the same."""
