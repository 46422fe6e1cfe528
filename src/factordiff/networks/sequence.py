"""A plain bidirectional transformer over sequences: rotary positions, no condition, no refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.networks.conditioning import one_hot
from factordiff.networks.config import CELLS, CHANNELS, LAYERS, NetworkConfig
from factordiff.networks.network import Network
from factordiff.networks.parameters import Slot, Weights, linear
from factordiff.networks.transformer import Block, Hidden, line_rotations, plain_block
from factordiff.schema.values import Whole
from factordiff.types import CellLogProbs, Tokens


@dataclass(frozen=True)
class SequenceConfig(NetworkConfig):
    """Values at up to `length` cells in a row; with 96 values 1,204,448 parameters.

    No weight depends on the length: shorter sequences can be asked about, and longer ones refused.
    """

    length: Annotated[int, Whole(1, CELLS)] = 256
    width: Annotated[int, CHANNELS] = 128
    blocks: Annotated[int, LAYERS] = 6
    heads: Annotated[int, Whole(1, 1_024)] = 4
    expansion: Annotated[int, Whole(1, 64)] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % (2 * self.heads):
            raise InvalidInput(
                f"width: expected an even number of channels for each of {self.heads} heads, got {self.width}"
            )

    @property
    def cells(self) -> int:
        """The longest sequence."""
        return self.length

    @classmethod
    def sized(cls, values: int, cells: int) -> dict[str, int]:
        """It takes any number of values and cells."""
        return {"values": values, "length": cells}

    def weight_slots(self) -> dict[str, Slot]:
        """Every weight by name; what ends a branch starts at zero, so that each block starts as the identity."""
        d = self.width
        slots = {
            "embed": Slot((self.values + 1, d), std=1.0),
            "head.weight": Slot((self.values, d)),
            "head.bias": Slot((self.values,)),
        }
        for block in range(self.blocks):
            slots |= {
                f"blocks.{block}.qkv": Slot((3 * d, d), d**-0.5, matrices=(3, d, d)),
                f"blocks.{block}.out": linear(d, d, zero=True),
                f"blocks.{block}.up": linear(self.expansion * d, d),
                f"blocks.{block}.down": linear(d, self.expansion * d, zero=True),
            }
        return slots


class SequenceParts(NamedTuple):
    """The pure functions of a sequence transformer, as they are or compiled."""

    embed: Callable[..., Hidden]
    apply_blocks: Callable[..., Hidden]
    readout: Callable[..., CellLogProbs]


class SequenceTransformer(Network):
    """Every cell of a sequence attends to every other; nothing is known beside the sequence itself."""

    config: SequenceConfig
    _rotation: Tensor

    def __init__(self, config: SequenceConfig | None = None, seed: int | None = 0) -> None:
        config = config or SequenceConfig()
        super().__init__(config, seed)
        self.register_buffer(
            "_rotation", line_rotations(config.length, config.width // config.heads), persistent=False
        )

    def __repr__(self) -> str:
        config = self.config
        return (
            f"{type(self).__name__}({self.layout.count:,} parameters, {config.values} values, "
            f"up to {config.length} cells, {self.state_in_words()})"
        )

    def own_parts(self) -> SequenceParts:
        """The parts as they are written."""
        return SequenceParts(self.embed, self.apply_blocks, self.readout)

    def prepare(self, weights: Weights) -> Weights:
        """The weights as they are, and the rotation in their precision."""
        return {**weights, "rotation": self._rotation.to(weights["embed"].dtype)}

    def tensors_of_condition(self, condition: Any) -> tuple[Tensor, ...]:
        """It is told nothing."""
        if condition is not None:
            raise InvalidInput(
                f"condition: a sequence transformer takes none, got {type(condition).__name__}; give None, or use a "
                "network that reads it (backbone trans-ir or conv-ir)"
            )
        return ()

    def encode_tensors(self, weights: Weights, *given: Tensor) -> tuple[None, None]:
        """Nothing to know."""
        return None, None

    def check_cells(self, cells: int) -> None:
        """Up to as many as it was trained on."""
        if not 1 <= cells <= self.config.length:
            raise InvalidInput(f"x_t: expected 1 to {self.config.length} cells, got {cells}")

    def embed(self, weights: Weights, x_t: Tokens) -> Hidden:
        """A vector for each value and for the mask; a product, whose gradient adds up in a fixed order."""
        table = weights["embed"]
        return one_hot(x_t, len(table), table.dtype) @ table

    def apply_blocks(self, weights: Weights, h: Hidden) -> Hidden:
        """All blocks, one after another."""
        size = self.config.width // self.config.heads
        rotation = weights["rotation"][:, : h.shape[1]]
        for number in range(self.config.blocks):
            names = ("qkv", "out", "up", "down")
            block = Block(*(weights[f"blocks.{number}.{name}"] for name in names))
            h = plain_block(h, block, self.config.heads, size**-0.5, rotation)
        return h

    def readout(self, weights: Weights, h: Hidden) -> CellLogProbs:
        """Normalise and project to the values; the mask has no logit."""
        normed = F.layer_norm(h, (h.shape[-1],))
        return F.linear(normed, weights["head.weight"]).float() + weights["head.bias"].float()

    def logits(self, weights: Weights, x_t: Tokens, encoded: None) -> CellLogProbs:
        """One pass: embed, all blocks, read out."""
        h = self.parts.embed(weights, x_t)
        return self.parts.readout(weights, self.parts.apply_blocks(weights, h))
