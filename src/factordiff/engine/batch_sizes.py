"""How many rows are in flight, and the few sizes that batches are filled up to."""

from __future__ import annotations

from dataclasses import dataclass

from factordiff.errors import InvalidInput
from factordiff.schema.values import Whole


@dataclass(frozen=True)
class BatchSizes:
    """At most `rows` rows in flight; a batch is filled up to the next of `sizes`.

    Compiled code and recorded graphs then see few shapes. Without sizes nothing is filled up: right where shapes cost
    nothing.
    """

    rows: int
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        Whole(1).read(self.rows, "batch")
        if self.sizes and (min(self.sizes) < 1 or max(self.sizes) < self.rows):
            raise InvalidInput(
                f"batch: expected sizes of at least 1 that reach up to {self.rows} rows, got {list(self.sizes)}"
            )

    @classmethod
    def fixed(cls, rows: int, smallest: int = 8) -> BatchSizes:
        """Sizes of rows, 3/4, 1/2, 3/8, 1/4 ... of them: at most a third of a batch is padding.

        >>> BatchSizes.fixed(64, smallest=16).sizes
        (16, 24, 32, 48, 64)
        """
        sizes, size = {rows}, rows
        while size > smallest:
            sizes |= {-(-3 * size // 4), -(-size // 2)}
            size = -(-size // 2)
        return cls(rows, tuple(sorted(sizes)))

    @classmethod
    def for_graphs(cls, rows: int) -> BatchSizes:
        """Few sizes, since each is recorded; small ones too: the last hard items run many passes among themselves.

        >>> BatchSizes.for_graphs(64).sizes
        (1, 2, 4, 8, 16, 32, 48, 64)
        """
        return cls(rows, tuple(sorted({-(-rows * parts // 64) for parts in (64, 48, 32, 16, 8, 4, 2, 1)})))

    def filled(self, rows: int) -> int:
        """How many rows a batch of this many is filled up to; one of none stays empty."""
        return min((size for size in self.sizes if size >= rows > 0), default=rows)

    def slots(self, particles: int) -> int:
        """How many items may be in flight."""
        if particles > self.rows:
            raise InvalidInput(
                f"batch: expected room for the {particles} particles of an item, got {self.rows} rows"
            )
        return self.rows // particles
