"""What a run measures: experts, a method and how it is set, on the first queries of a list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factordiff.report.record import Question
from factordiff.report.records import SUFFIX


@dataclass(frozen=True)
class RunSpec:
    """What is measured: it determines the records but for seed, steps and the experts' weights."""

    experts: tuple[str, ...]
    method: str
    split: str = "test"
    factors: str = "pixel"
    temperatures: tuple[float, ...] | None = None
    beta: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None
    resampling: float | None = None  # of particles; None is the usual half
    queries: int | None = None  # the first of the list; None is all
    question: Question = "full"
    others: tuple[tuple[str, Any], ...] = ()  # further options of the method, by name

    @property
    def name(self) -> str:
        """The row's name, and its file's."""
        parts = [self.split, "+".join(self.experts), self.method]
        if self.question != "full":
            parts.append(self.question)
        if self.factors != "pixel":
            parts.append(self.factors)
        if self.temperatures is not None and any(number != 1 for number in self.temperatures):
            parts.append(f"t{_spelled(self.temperatures)}")
        if self.beta is not None:
            parts.append(f"b{_spelled(self.beta)}")
        if self.weights is not None:
            parts.append(f"w{_spelled(self.weights)}")
        if self.resampling is not None:
            parts.append(f"r{self.resampling:g}")
        parts += [f"{name}-{_spelled(value)}" for name, value in self.others]
        return ".".join(parts)

    def file(self, folder: Path) -> Path:
        """Where its records are."""
        return folder / f"{self.name}{SUFFIX}"


def _spelled(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "-".join(f"{number:g}" for number in value)
    return Path(value).name if isinstance(value, str) else f"{value}"  # a folder's name is enough
