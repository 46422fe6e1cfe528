r"""The loop that both backbones share, and the expert around it.

h = embedded input; H times { L times $z_L \leftarrow f(z_L+z_H+h)$; then $z_H \leftarrow f(z_H+z_L)$ };
the logits are read from $z_H$. Paper: section "Denoising Architecture".
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.networks.conditioning import Frames, Present, encode_pairs
from factordiff.networks.config import RefinementConfig
from factordiff.networks.item_encoding import ItemEncoding, encode_item, modulations
from factordiff.networks.latents import (
    BlockLatents,
    latent_context,
    latent_keys_values,
    read_latents,
    with_field,
)
from factordiff.networks.network import Network
from factordiff.networks.parameters import Weights
from factordiff.types import CellLogProbs, Tokens

State = Float[Tensor, "batch ..."]


class Cycles(NamedTuple):
    """How often the loop turns: `outer` is the paper's H, `inner` its L. Both may be changed after training."""

    outer: int = 2
    inner: int = 2


def refine(f: Callable[[State], State], h: State, z_high: Tensor, z_low: Tensor, cycles: Cycles) -> State:
    r"""Refine the two latent states and return $z_H$.

    `z_high` and `z_low` are the learned initial states, broadcast over rows and cells.
    """
    for _ in range(cycles.outer):
        for _ in range(cycles.inner):
            z_low = f(z_low + z_high + h)
        z_high = f(z_high + z_low)
    return z_high


class Encoded(NamedTuple):
    """An item as the passes need it; what attention sees beside the cells is None without latents.

    The modulation of a block is six vectors: scale, shift and gate of the attention, then of the FFN; of Conv-IR scale,
    injection and gate of the convolutions, and without latents the injection alone.
    """

    cells: Float[Tensor, "item ..."]
    modulation: Float[Tensor, "item block parts channel"]
    keys: BlockLatents | None
    values: BlockLatents | None


class RefinementNetwork(Network):
    """A denoiser with iterative refinement, told a query and its demonstrations.

    Its parts: `read` and `encode_with` once per item, `embed`, `apply_once` (the paper's f) and `readout` once per
    pass; f is compiled once and reused for all its applications.
    """

    config: RefinementConfig

    def __init__(self, config: RefinementConfig, seed: int | None, blocks: int) -> None:
        super().__init__(config, seed)
        self.cycles = Cycles(*config.cycles)
        self.blocks = [f"blocks.{block}" for block in range(blocks)]  # how the names of their weights begin

    def __repr__(self) -> str:
        height, width = self.config.layout
        return (
            f"{type(self).__name__}({self.layout.count:,} parameters, {height}x{width} cells, "
            f"conditioning={self.config.conditioning!r}, cycles={tuple(self.cycles)}, {self.state_in_words()})"
        )

    @abstractmethod
    def pair_tokens(
        self, weights: Weights, inputs: Frames, outputs: Frames
    ) -> Float[Tensor, "pair token channel"]:
        """The tokens of each demonstration, on its own."""

    def read(self, weights: Weights, inputs: Frames, outputs: Frames) -> Float[Tensor, "item frame ..."]:
        """What each demonstration says: latents, or the paper's pair encoding."""
        config = self.config
        if config.conditioning == "paper":
            return encode_pairs(weights, inputs, outputs, config.values, config.layout)
        tokens = self.pair_tokens(weights, inputs, outputs)
        read = read_latents(weights, tokens, config.head_size)
        if config.field:
            read = with_field(read, tokens)
        return read.unflatten(0, tuple(inputs.shape[:2]))

    def encode_with(
        self,
        weights: Weights,
        query: Int[Tensor, "item cell"],
        inputs: Frames,
        outputs: Frames,
        present: Present,
        read: Float[Tensor, "item frame ..."],
    ) -> Encoded:
        """Embed the query and compute every block's modulation from what the demonstrations said."""
        item = encode_item(self.config, weights, query, inputs, outputs, present, read)
        keys = values = None
        if item.latents is not None:
            keys, values = latent_keys_values(weights, self.blocks, item.latents, self.config.heads)
        modulation = modulations(weights, self.blocks, item.context)
        return Encoded(self.embed_item(weights, item), modulation, keys, values)

    @abstractmethod
    def embed_item(self, weights: Weights, item: ItemEncoding) -> Float[Tensor, "item ..."]:
        """The part of the embedded input that is the same in every pass: the query, the field, where cells are."""

    @abstractmethod
    def embed(self, weights: Weights, x_t: Tokens, encoded: Encoded) -> State:
        """The embedded input h."""

    @abstractmethod
    def apply_once(self, weights: Weights, state: State, encoded: Encoded) -> State:
        """One application of the backbone f."""

    @abstractmethod
    def readout(self, weights: Weights, state: State) -> CellLogProbs:
        """Logits in float32, one per value."""

    def logits(self, weights: Weights, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """One pass: embed, refine, read out."""
        h = self.parts.embed(weights, x_t, encoded)
        z_high = refine(
            lambda state: self.parts.apply_once(weights, state, encoded),
            h,
            weights["z_high"],
            weights["z_low"],
            self.cycles,
        )
        return self.parts.readout(weights, z_high)

    def tensors_of_condition(self, condition: Any) -> tuple[Tensor, ...]:
        """The query, the demonstrations' inputs and outputs, and which of them are there."""
        if not isinstance(condition, Condition):
            raise InvalidInput(
                f"condition: expected a Condition (a query and its demonstrations), got {type(condition).__name__}"
            )
        if condition.query.shape[-1] != self.config.cells:
            raise InvalidInput(
                f"condition: expected {self.config.cells} cells (a canvas of {self.config.layout}), "
                f"got {condition.query.shape[-1]}"
            )
        return (*condition.grids(self.config.sees_sizes), condition.present)

    def encode_tensors(self, weights: Weights, *given: Tensor) -> tuple[Any, Tensor]:
        """What every pass needs to know about an item, and what its demonstrations said."""
        query, inputs, outputs, present = given
        read = self.parts.read(weights, inputs, outputs)
        return self.parts.encode_with(weights, query, inputs, outputs, present, read), read

    def encode(self, condition: Any) -> Any:
        """What `log_probs` needs about each item, computed once per query."""
        given = self.tensors_of_condition(condition)
        if condition.query.device.type == "cpu":  # elsewhere looking would mean waiting
            condition.check()
        return self.encode_tensors(self.ready(), *given)[0]

    def codes(
        self, weights: Weights, read: Float[Tensor, "item frame ..."]
    ) -> Float[Tensor, "item frame context"]:
        """The context vector that each demonstration alone would give: two of one item should agree."""
        if self.config.conditioning == "paper":
            return read
        latents = read[:, :, : self.config.latents]
        each = F.layer_norm(latents, (read.shape[-1],)).flatten(0, 1)
        return latent_context(weights, each).unflatten(0, tuple(read.shape[:2]))

    def check_cells(self, cells: int) -> None:
        """It was made for one canvas."""
        if cells != self.config.cells:
            raise InvalidInput(
                f"x_t: expected {self.config.cells} cells (a canvas of {self.config.layout}), got {cells}"
            )

    def with_cycles(self, outer: int, inner: int) -> RefinementNetwork:
        """The same expert with another number of refinement cycles, sharing its weights."""
        if min(outer, inner) < 1:
            raise InvalidInput(f"cycles: expected two whole numbers of at least 1, got {(outer, inner)}")
        other = copy.copy(self)
        other.cycles = Cycles(outer, inner)
        return other

    def own_parts(self) -> RefinementParts:
        """The parts as they are written."""
        return RefinementParts(self.read, self.encode_with, self.embed, self.apply_once, self.readout)


class RefinementParts(NamedTuple):
    """The pure functions of such a network, as they are or compiled."""

    read: Callable[..., Tensor]
    encode_with: Callable[..., Any]
    embed: Callable[..., State]
    apply_once: Callable[..., State]
    readout: Callable[..., CellLogProbs]
