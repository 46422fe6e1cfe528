"""What a file of figures may say, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from factordiff.schema.bound import Bound
from factordiff.schema.objects import Listed, Named, Parts
from factordiff.schema.values import Real, String, Whole

MOST_FIGURES = 1_000
MOST_QUERIES = 10_000_000


@dataclass(frozen=True)
class Bits(Bound):
    """Bytes in hexadecimal, a bit for each query."""

    expected = "bytes in hexadecimal"

    def read(self, value: Any, name: str) -> str:
        """The text."""
        if not isinstance(value, str) or len(value) > MOST_QUERIES // 4:
            self.refuse(value, name)
        try:
            bytes.fromhex(value)
        except ValueError:
            self.refuse(value, name)
        return value


SHARE, SECONDS = Real(0.0, 1.0), Real(0.0)
FIGURE = Parts(
    {
        "split": String(),
        "question": String(),
        "queries": Whole(1, MOST_QUERIES),
        "exact": SHARE,
        "low": SHARE,
        "high": SHARE,
        "pixel": SHARE,
        "device": String(),
        "dtype": String(),
        "steps": Whole(),
        "commit": String(),
        "seconds": SECONDS,
        "tasks": Named(SHARE),
        "outcomes": Bits(),
        "reveal": String(),
    },
    optional=("reveal",),
)
AGREEMENT = Parts(
    {
        "one": String(),
        "other": String(),
        "split": String(),
        "queries": Whole(1, MOST_QUERIES),
        "equal": SHARE,
        "question": String(),
    },
    optional=("question",),
)
FIGURES = Parts(
    {
        "weights": String(),
        "data": String(),
        "measured": Listed(FIGURE, MOST_FIGURES),
        "agreements": Listed(AGREEMENT, MOST_FIGURES),
    }
)
