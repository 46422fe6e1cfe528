"""An expert with its name, what it was trained on and where it was loaded from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from factordiff.experts.expert import Expert


@dataclass(frozen=True)
class NamedExpert:
    """An expert, what it is called and what it was trained on."""

    name: str
    expert: Expert
    objective: str = "full"
    folder: Path | None = None  # where it was loaded from

    def __repr__(self) -> str:
        return f"{self.name} ({self.objective})"
