"""A record: how one query went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from factordiff.arc.grid import SIDE

Question = Literal["full", "occupancy", "color"]
QUESTIONS = get_args(Question)


@dataclass(frozen=True)
class Record:
    """How one query went."""

    query: int  # place in the fixed list
    task: str
    number: int  # place in its task
    wrong: tuple[int, ...]  # the cells that differ from the truth
    nominal: int
    executed: int
    seed: int = 0
    drawn: tuple[int, ...] | None = None  # particle methods: `wrong` of the particle drawn by weight
    grid: bool | None = None  # published tasks: right once cut to the inferred shape
    drawn_grid: bool | None = None  # and the particle drawn by weight
    answer: str = ""  # a hash of the whole answer: equal answers, equal hashes
    shape: tuple[int, int] | None = None  # of the right grid
    measures: dict[str, tuple[float, float]] | None = None  # a world's own: what is added up, and its size

    @property
    def exact(self) -> bool:
        """Every cell right."""
        return not self.wrong

    def cropped(self, wrong: tuple[int, ...]) -> bool | None:
        """Whether no wrong cell lies in the right grid: the rest of the canvas is padding."""
        if self.shape is None:
            return None
        height, width = self.shape
        return not any(cell // SIDE < height and cell % SIDE < width for cell in wrong)
