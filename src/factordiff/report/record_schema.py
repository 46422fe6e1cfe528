"""What the lines of a record file may say, whoever wrote them: a header, a line for each batch and each record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from factordiff.schema.bound import Bound
from factordiff.schema.objects import Named, Parts, Two
from factordiff.schema.values import LARGEST_COUNT, Real, String, Whole

LARGEST_CELL = 65_535


@dataclass(frozen=True)
class CellRuns(Bound):
    """Cells in increasing order as `write_cells` spells them; how many there are is bounded by the largest."""

    expected = f"cells from 0 to {LARGEST_CELL:,} in increasing order, such as 3-5,17"

    def read(self, value: Any, name: str) -> tuple[int, ...]:
        """The cells, one by one."""
        if not isinstance(value, str):
            self.refuse(value, name)
        cells: list[int] = []
        for run in value.split(",") if value else ():
            first, sign, last = run.partition("-")
            ends = (first, last) if sign else (first, first)
            if not all(end.isascii() and end.isdigit() and len(end) <= 5 for end in ends):
                self.refuse(value, name)
            begin, end = int(ends[0]), int(ends[1])
            if not (cells[-1] if cells else -1) < begin <= end <= LARGEST_CELL:
                self.refuse(value, name)
            cells += range(begin, end + 1)
        return tuple(cells)


CELLS, FLAG = CellRuns(), Whole(0, 1)
RECORD = Parts(
    {
        "query": Whole(),
        "task": String(),
        "number": Whole(),
        "exact": FLAG,
        "wrong": CELLS,
        "nominal": Whole(),
        "executed": Whole(),
        "seed": Whole(-LARGEST_COUNT),
        "drawn": CELLS,
        "grid": FLAG,
        "drawn_grid": FLAG,
        "answer": String(100),
        "shape": Two(Whole(1, 1_024)),
        "measures": Named(Two(Real(finite=False))),
    },
    optional=("exact", "drawn", "grid", "drawn_grid", "answer", "shape", "measures"),
    more=True,
)
BATCH = Parts({"seconds": Real(0.0), "device": String(), "commit": String()}, more=True)
HEADER = Parts(
    {
        "row": String(),
        "data": String(),
        "weights": Named(String()),
        "listed": Whole(),
        "method": Parts({"split": String(), "question": String()}, optional=("split", "question"), more=True),
        "settings": Parts({"steps": Whole(), "dtype": String()}, optional=("steps", "dtype"), more=True),
    },
    optional=("data", "weights", "listed", "method", "settings"),
    more=True,
)
