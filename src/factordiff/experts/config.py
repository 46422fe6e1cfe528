"""What determines a network's function, apart from its weights."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from factordiff.errors import InvalidInput


@dataclass(frozen=True)
class NetworkConfig(ABC):
    """What every network has: so many values at so many cells."""

    values: int = 10

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many cells the canvas has."""

    @classmethod
    def sized(cls, values: int, cells: int) -> dict[str, int]:
        """The settings that follow from data of so many values and cells; a network of fixed size has none."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """The configuration as plain JSON values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()
        }


@dataclass(frozen=True)
class RefinementConfig(NetworkConfig):
    """What the two backbones with iterative refinement have in common; each adds its own."""

    layout: tuple[int, int] = (10, 10)
    width: int = 144
    context: int = 144
    heads: int = 4
    conditioning: str = "latents"
    latents: int = 16
    field: bool = True
    slots: int = 3
    head: str = "zero"
    cycles: tuple[int, int] = (2, 2)
    sees_sizes: bool = False  # whether padding is told from value 0; weights of before have no such field
    literal: bool = (
        False  # whether it is the paper's network to the letter; weights of before have no such field
    )

    def __post_init__(self) -> None:
        for name, known in (("conditioning", ("latents", "paper")), ("head", ("zero", "default"))):
            if getattr(self, name) not in known:
                raise InvalidInput(f"{name}: expected one of {', '.join(known)}, got {getattr(self, name)!r}")
        for name in ("values", "width", "context", "heads", "latents", "slots"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name}: expected at least 1, got {getattr(self, name)!r}")
        for name in ("layout", "cycles"):
            pair = getattr(self, name)
            if len(pair) != 2 or min(pair) < 1:
                raise InvalidInput(f"{name}: expected two whole numbers of at least 1, got {pair!r}")
        for name in ("sees_sizes", "literal"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name}: expected true or false, got {getattr(self, name)!r}")
        if self.literal and self.conditioning != "paper":
            raise InvalidInput(f"literal: expected conditioning paper with it, got {self.conditioning!r}")
        if self.width % self.heads:
            raise InvalidInput(f"width: expected a multiple of heads={self.heads}, got {self.width}")

    @property
    def cells(self) -> int:
        """How many cells the canvas has."""
        return self.layout[0] * self.layout[1]

    @property
    def head_size(self) -> int:
        """Channels of one attention head."""
        return self.width // self.heads

    @property
    @abstractmethod
    def pair_layout(self) -> tuple[int, int]:
        """Rows and columns of a demonstration's tokens."""
