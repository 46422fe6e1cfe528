"""What determines a network's function, apart from its weights."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

from factordiff.errors import InvalidInput
from factordiff.networks.parameters import Slot
from factordiff.schema.fields import check_fields
from factordiff.schema.objects import Two
from factordiff.schema.values import Choice, Flag, Whole

# What no file may exceed. Sizes that weights depend on must also agree with the weight file before anything is made;
# these bounds keep small what no weight shows (positions of a large canvas, cycles) and the list of weights itself.
VALUES = Whole(1, 1_000_000)
CHANNELS = Whole(1, 16_384)
LAYERS = Whole(1, 512)
CELLS = 16_384


@dataclass(frozen=True)
class NetworkConfig(ABC):
    """What every network has: so many values at so many cells. Each field declares what it may be."""

    values: Annotated[int, VALUES] = 10

    def __post_init__(self) -> None:
        check_fields(self)
        if self.cells > CELLS:
            raise InvalidInput(f"layout: expected at most {CELLS:,} cells, got {self.cells:,}")

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many cells the canvas has."""

    @abstractmethod
    def weight_slots(self) -> dict[str, Slot]:
        """Every weight that a network of this configuration has, by name: known before one is made."""

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

    layout: Annotated[tuple[int, int], Two(Whole(1, 1_024))] = (10, 10)
    width: Annotated[int, CHANNELS] = 144
    context: Annotated[int, CHANNELS] = 144
    heads: Annotated[int, Whole(1, 1_024)] = 4
    conditioning: Annotated[str, Choice(("latents", "paper"))] = "latents"
    latents: Annotated[int, Whole(1, 4_096)] = 16
    field: Annotated[bool, Flag()] = True
    slots: Annotated[int, Whole(1, 64)] = 3
    head: Annotated[str, Choice(("zero", "default"))] = "zero"
    cycles: Annotated[tuple[int, int], Two(Whole(1, 64))] = (2, 2)
    # Whether padding is told from value 0, and whether it is the paper's network to the letter. Weights of before have
    # no such fields.
    sees_sizes: Annotated[bool, Flag()] = False
    literal: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
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
