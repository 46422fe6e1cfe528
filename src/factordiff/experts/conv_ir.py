"""Conv-IR: the iterative-refinement U-shaped convnet. Paper: appendix "Convolutional Backbone Architecture"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts import attention
from factordiff.experts import conditioning as cond
from factordiff.experts.attention import Extra, Rotation
from factordiff.experts.config import NetworkConfig
from factordiff.experts.convnet import Planes, attend, halved, residual_block
from factordiff.experts.latents import latent_keys_values, latent_slots, prepare_latents
from factordiff.experts.parameters import Layout, Slot, Weights, convolution, linear
from factordiff.experts.refinement import Network
from factordiff.experts.told import tell
from factordiff.experts.transformer import rotations
from factordiff.types import CellLogProbs, Tokens

BLOCKS = 2  # one at full resolution, one below it
SUMMARY = 8  # channels of a latent that reach the context vector
EXPANSION = 1  # of the latents' own layer


@dataclass(frozen=True)
class ConvIRConfig(NetworkConfig):
    """Conv-IR: 128 channels, two residual blocks, GroupNorm(8), context dimension 256."""

    width: int = 128
    context: int = 256
    groups: int = 8
    encoder: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.groups:
            raise InvalidInput(f"width: expected a multiple of groups={self.groups}, got {self.width}")
        if self.head_size % 4:
            raise InvalidInput(
                f"heads: expected heads of a multiple of 4 channels, got {self.head_size} (width / heads)"
            )

    @property
    def pair_layout(self) -> tuple[int, int]:
        """Half the canvas, rounded up."""
        height, width = ((side + 1) // 2 for side in self.layout)
        return height, width


class ConvEncoded(NamedTuple):
    """An item as Conv-IR's passes need it; the attention's part is None without latents."""

    cells: Float[Tensor, "item channel height width"]
    injection: Float[Tensor, "item block channel"]
    scale: Float[Tensor, "item block channel"] | None
    modulation: Float[Tensor, "item two channel"] | None
    keys: Float[Tensor, "item head latent size"] | None
    values: Float[Tensor, "item head latent size"] | None


def _slots(config: ConvIRConfig) -> dict[str, Slot]:
    c, v = config.width, config.values
    shown = v * (1 + 2 * config.slots) if config.conditioning == "paper" else v
    slots = {
        "z_high": Slot((c, 1, 1), std=0.02),
        "z_low": Slot((c, 1, 1), std=0.02),
        "embed.x_t": Slot((c, v, 3, 3), std=0.5),
        "embed.query": Slot((c, shown, 3, 3), std=0.5),
        "embed.bias": Slot((c, 1, 1)),
        "up": linear(c, c, zero=True),
        "head.gain": Slot((c,), mean=1.0),
        "head.shift": Slot((c,)),
        "head.weight": Slot((v, c, 3, 3), 0.0 if config.head == "zero" else (9 * c) ** -0.5),
        "head.bias": Slot((v,)),
    }
    for block in range(BLOCKS):
        slots |= {
            f"blocks.{block}.gain_1": Slot((c,), mean=1.0),
            f"blocks.{block}.shift_1": Slot((c,)),
            f"blocks.{block}.first": convolution(c, c),
            f"blocks.{block}.inject": linear(c, config.context),
            f"blocks.{block}.inject_bias": Slot((c,)),
            f"blocks.{block}.gain_2": Slot((c,), mean=1.0),
            f"blocks.{block}.shift_2": Slot((c,)),
            f"blocks.{block}.second": convolution(c, c, zero=True),  # the block starts as the identity
        }
    if config.conditioning == "paper":
        return slots | cond.paper_slots(v, config.encoder, config.context)
    heads, size = config.heads, config.head_size
    slots |= cond.grid_encoder_slots("query", v, config.encoder, config.context)
    slots |= latent_slots(config.latents, c, heads, config.context, SUMMARY, EXPANSION)
    slots |= {
        # The pairs run through the lower block and the attention, with an injection and an open gate of their own.
        "pair.embed": Slot((c, 2 * v, 3, 3), std=0.5),
        "pair.injection": Slot((c,)),
        "pair.gate": Slot((c,), mean=1.0),
        **({"latents.field": linear(c, c)} if config.field else {}),
        "attend.qkv": Slot((3, heads, size, c), c**-0.5, matrices=(3, c, c)),
        "attend.out": Slot((c, heads, size), c**-0.5, matrices=(1, c, c)),
        "attend.gate": Slot((c,)),
        "attend.modulation": Slot((2, c, config.context), matrices=(2, c, config.context)),
        "attend.modulation_bias": Slot((2, c)),
    }
    for block in range(BLOCKS):
        slots[f"blocks.{block}.scale"] = linear(c, config.context, zero=True)
        slots[f"blocks.{block}.scale_bias"] = Slot((c,))
    return slots


def _per_block(
    driver: Float[Tensor, "item context"], weights: Weights, name: str
) -> Float[Tensor, "item block channel"]:
    """What each block makes of the context."""
    return torch.stack(
        [
            F.linear(driver, weights[f"blocks.{block}.{name}"], weights[f"blocks.{block}.{name}_bias"])
            for block in range(BLOCKS)
        ],
        1,
    )


class ConvIR(Network):
    """The convolutional expert: local patterns at full resolution, wider ones below it, and a look at all cells."""

    config: ConvIRConfig
    _positions: Tensor
    _pair_positions: Tensor
    _rotation: Tensor
    _pair_rotation: Tensor

    def __init__(self, config: ConvIRConfig | None = None, seed: int = 0) -> None:
        config = config or ConvIRConfig()
        super().__init__(config, Layout(_slots(config)), seed)
        tall, wide = config.pair_layout
        tables = {
            "_positions": cond.sinusoidal_positions(*config.layout, config.width),
            "_pair_positions": cond.sinusoidal_positions(*config.pair_layout, config.width),
            "_rotation": rotations(*config.layout, config.head_size),
            "_pair_rotation": rotations(2 * tall, 2 * wide, config.head_size, 2),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def prepare(self, weights: Weights) -> Weights:
        """Lay kernels out as convolutions on channels-last pictures want them, pad the heads, place the positions."""
        ready = dict(weights)
        for name, weight in weights.items():
            if weight.shape[2:] == (3, 3):
                ready[name] = weight.contiguous(memory_format=torch.channels_last)
        if self.config.conditioning == "paper":
            return ready
        to, dtype = attention.padded_head(self.config.head_size), weights["up"].dtype
        ready |= prepare_latents(weights, self.config.head_size)
        ready["attend.qkv"] = attention.pad_heads(weights["attend.qkv"], -2, to).flatten(0, 2)
        ready["attend.out"] = attention.pad_heads(weights["attend.out"], -1, to).flatten(1)
        ready["positions"] = cond.as_planes(self._positions.to(dtype)[None], self.config.layout)
        ready["pair_positions"] = cond.as_planes(
            self._pair_positions.to(dtype)[None], self.config.pair_layout
        )
        ready["rotation"] = self._rotation.to(dtype)
        ready["pair_rotation"] = self._pair_rotation.to(dtype)
        return ready

    def encode_with(
        self,
        weights: Weights,
        query: Int[Tensor, "item cell"],
        inputs: cond.Frames,
        outputs: cond.Frames,
        present: Bool[Tensor, "item frame"],
        read: Float[Tensor, "item frame ..."],
    ) -> ConvEncoded:
        """Embed the query and compute every block's injection from what the demonstrations said."""
        told = tell(self.config, weights, query, inputs, outputs, present, read)
        planes = cond.as_planes(told.channels, self.config.layout)
        cells = F.conv2d(planes, weights["embed.query"], padding=1) + weights["embed.bias"]
        if told.field is not None:
            cells = cells + told.field.permute(0, 3, 1, 2)
        driver = F.silu(told.context)
        injection = _per_block(driver, weights, "inject")
        if told.latents is None:
            return ConvEncoded(cells, injection, None, None, None, None)
        scale = _per_block(driver, weights, "scale")
        modulation = F.linear(driver, weights["attend.modulation"].flatten(0, 1)).unflatten(-1, (2, -1))
        modulation = modulation + weights["attend.modulation_bias"]
        keys, values = latent_keys_values(told.latents, weights["attend.qkv"], self.config.heads)
        return ConvEncoded(cells + weights["positions"], injection, scale, modulation, keys, values)

    def pair_tokens(
        self, weights: Weights, inputs: cond.Frames, outputs: cond.Frames
    ) -> Float[Tensor, "pair token channel"]:
        """Each pair at half resolution, through the lower block and the attention twice."""
        config = self.config
        pairs = cond.one_hot_pairs(inputs, outputs, config.values, weights["positions"].dtype).flatten(0, 1)
        planes = F.conv2d(cond.as_planes(pairs, config.layout), weights["pair.embed"], padding=1, stride=2)
        planes = planes + weights["pair_positions"]
        injection = weights["pair.injection"].expand(len(planes), -1)
        for _ in range(2):
            planes = residual_block(planes, weights, "blocks.1", injection, config.groups)
            planes = self._attend(planes, weights, weights["pair.gate"], weights["pair_rotation"])
        return planes.flatten(2).transpose(1, 2)

    def embed(self, weights: Weights, x_t: Tokens, encoded: ConvEncoded) -> Planes:
        """The embedded input: a 3x3 convolution of one-hot grids, in which a masked cell is the zero vector."""
        planes = cond.as_planes(
            cond.one_hot(x_t, self.config.values, encoded.cells.dtype), self.config.layout
        )
        return F.conv2d(planes, weights["embed.x_t"], padding=1) + encoded.cells

    def apply_once(self, weights: Weights, state: Planes, encoded: ConvEncoded) -> Planes:
        """Down and up the U once: a block above, a block below, and the skip connection between them."""
        above = self._block(state, weights, 0, encoded)
        if encoded.keys is not None and encoded.values is not None:
            extra = encoded.keys, encoded.values
            above = self._attend(
                above, weights, weights["attend.gate"], weights["rotation"], encoded.modulation, extra
            )
        below = F.conv2d(self._block(halved(above), weights, 1, encoded), weights["up"][:, :, None, None])
        return above + F.interpolate(below, size=self.config.layout, mode="nearest")

    def _block(self, planes: Planes, weights: Weights, block: int, encoded: ConvEncoded) -> Planes:
        scale = None if encoded.scale is None else encoded.scale[:, block]
        return residual_block(
            planes, weights, f"blocks.{block}", encoded.injection[:, block], self.config.groups, scale
        )

    def _attend(
        self,
        planes: Planes,
        weights: Weights,
        gate: Tensor,
        rotation: Rotation,
        modulation: Tensor | None = None,
        extra: Extra | None = None,
    ) -> Planes:
        heads, scale = self.config.heads, self.config.head_size**-0.5
        return attend(planes, weights, gate, modulation, extra, rotation, heads, scale, self.fused)

    def readout(self, weights: Weights, state: Planes) -> CellLogProbs:
        """Normalise and project to the values; the mask has no logit."""
        normed = F.silu(F.group_norm(state, self.config.groups, weights["head.gain"], weights["head.shift"]))
        logits = F.conv2d(normed, weights["head.weight"], padding=1).float()
        return logits.flatten(2).transpose(1, 2) + weights["head.bias"].float()
