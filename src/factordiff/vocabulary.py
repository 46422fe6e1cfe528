"""The values a cell can take, and the mask that hides them."""

from __future__ import annotations

from dataclasses import dataclass

from factordiff.schema.values import Whole


@dataclass(frozen=True)
class Vocabulary:
    """Values `0 .. size-1`; the mask is `size`, one past the last value.

    >>> Vocabulary(10).mask
    10
    """

    size: int

    def __post_init__(self) -> None:
        Whole(1).read(self.size, "size")

    @property
    def mask(self) -> int:
        """The id of MASK, the absorbing state."""
        return self.size
