"""What need not be computed: each saving can be switched off, and none changes a result."""

from __future__ import annotations

from dataclasses import dataclass

from factordiff.errors import InvalidInput


@dataclass(frozen=True)
class Savings:
    """The exact savings of the loop: the same mathematics and the same random numbers, fewer passes."""

    idle: bool = True  # no pass for a row with nothing to reveal
    first_pass: bool = True  # the particles of an item share the pass at their common start
    duplicates: bool = True  # equal states of an item are computed once

    @classmethod
    def none(cls) -> Savings:
        """The loop as it is written down: every expert, every row, every step."""
        return cls(idle=False, first_pass=False, duplicates=False)


@dataclass(frozen=True)
class Bucket:
    """At most `rows` rows in flight; finished items leave, waiting ones take their place.

    A batch is filled up to the next of `sizes`, so that compiled code and recorded graphs see few shapes.
    Without sizes nothing is filled up: right where shapes cost nothing.
    """

    rows: int
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InvalidInput(f"bucket: expected a whole number of at least 1, got {self.rows!r}")
        if self.sizes and (min(self.sizes) < 1 or max(self.sizes) < self.rows):
            raise InvalidInput(
                f"bucket: expected sizes of at least 1 that reach up to {self.rows} rows, got {list(self.sizes)}"
            )

    @classmethod
    def of_fixed_sizes(cls, rows: int, smallest: int = 8) -> Bucket:
        """Sizes of rows, 3/4, 1/2, 3/8, 1/4 ... of them: at most a third of a batch is padding.

        >>> Bucket.of_fixed_sizes(64, smallest=16).sizes
        (16, 24, 32, 48, 64)
        """
        sizes, size = {rows}, rows
        while size > smallest:
            sizes |= {-(-3 * size // 4), -(-size // 2)}
            size = -(-size // 2)
        return cls(rows, tuple(sorted(sizes)))

    def filled(self, rows: int) -> int:
        """How many rows a batch of this many is filled up to."""
        return min((size for size in self.sizes if size >= rows), default=rows)

    def places(self, particles: int) -> int:
        """How many items may be in flight."""
        if particles > self.rows:
            raise InvalidInput(
                f"bucket: expected room for the {particles} particles of an item, got {self.rows} rows"
            )
        return self.rows // particles
