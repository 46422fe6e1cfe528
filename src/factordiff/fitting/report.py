"""What a fit tried, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Score:
    """How the held-out items went: whole items right, cells right, and the passes it took."""

    exact: float
    cells: float
    passes: int = 0

    @property
    def order(self) -> tuple[float, float]:
        """What is compared: whole items, then cells."""
        return self.exact, self.cells


@dataclass(frozen=True)
class Trial:
    """One setting; `score` where held-out items were answered with it, `loss` where their likelihood was taken."""

    setting: Mapping[str, Any]
    score: Score | None = None
    loss: float | None = None

    @property
    def said(self) -> str:
        """The setting for people."""
        each = [f"{name} {_spelled(value)}" for name, value in self.setting.items()]
        return ", ".join(each) or "as it is"

    def __repr__(self) -> str:
        came = [] if self.score is None else [f"{100 * self.score.exact:.1f} % exact"]
        came += [] if self.loss is None else [f"loss {self.loss:.5f}"]
        return f"Trial({self.said}: {', '.join(came)})"


@dataclass(frozen=True)
class FitReport:
    """What was fitted, every setting that was tried, in order, and the place of the one that was chosen."""

    what: str
    method: str
    trials: tuple[Trial, ...]
    chosen: int
    items: int  # that were fitted on
    held: int  # that chose
    seconds: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)
    edge: bool = False  # of some number nothing was tried beyond the chosen one

    @property
    def best(self) -> Trial:
        """The chosen setting."""
        return self.trials[self.chosen]

    def __repr__(self) -> str:
        return (
            f"FitReport({self.what} of {self.method}: {len(self.trials)} tried on {self.held} held-out items, "
            f"chosen {self.best!r}, {self.seconds:.0f} s)"
        )


def _spelled(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "/".join(f"{number:g}" for number in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
