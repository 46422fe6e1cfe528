"""Conv-IR: the iterative-refinement U-shaped convnet. Paper: appendix "Convolutional Backbone Architecture"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts import conditioning as cond
from factordiff.experts.config import NetworkConfig
from factordiff.experts.latents import latent_slots, prepare_latents
from factordiff.experts.parameters import Layout, Slot, Weights, convolution, linear
from factordiff.experts.refinement import Network
from factordiff.experts.told import tell
from factordiff.types import CellLogProbs, Tokens

BLOCKS = 2  # one at full resolution, one below it

Planes = Float[Tensor, "batch channel height width"]


@dataclass(frozen=True)
class ConvIRConfig(NetworkConfig):
    """Conv-IR: 128 channels, two residual blocks, GroupNorm(8), context dimension 256."""

    width: int = 128
    context: int = 256
    groups: int = 8
    heads: int = 4
    encoder: int = 64
    pair_width: int = 80

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, divisor in (("groups", self.groups), ("heads", self.heads)):
            if self.width % divisor:
                raise InvalidInput(f"width: expected a multiple of {name}={divisor}, got {self.width}")
        if self.pair_width % self.heads:
            raise InvalidInput(
                f"pair_width: expected a multiple of heads={self.heads}, got {self.pair_width}"
            )

    @property
    def pair_layout(self) -> tuple[int, int]:
        """Half the canvas, rounded up."""
        height, width = ((side + 1) // 2 for side in self.layout)
        return height, width

    @property
    def pair_head(self) -> int:
        """Of the demonstrations' own width."""
        return self.pair_width // self.heads


class ConvEncoded(NamedTuple):
    """An item as Conv-IR's passes need it; keys and values are None without latents."""

    cells: Float[Tensor, "item channel height width"]
    injection: Float[Tensor, "item block channel"]
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
        "down": linear(c, c),
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
    p = config.pair_width
    slots |= cond.grid_encoder_slots("query", v, config.encoder, config.context)
    slots |= latent_slots(config.latents, p, config.heads, config.context)
    slots |= {
        "pair.first": Slot((p, 2 * v, 3, 3), std=0.5),
        "pair.second": convolution(p, p),
        "pair.qkv": Slot((3, p, p), p**-0.5, matrices=(3, p, p)),
        "pair.out": linear(p, p),
        "pair.up": linear(2 * p, p),
        "pair.down": linear(p, 2 * p),
        **({"latents.field": linear(c, p)} if config.field else {}),
        "cross.query": linear(c, c),
        "cross.keys_values": Slot((2, c, p), p**-0.5, matrices=(2, c, p)),
        "cross.out": linear(c, c, zero=True),
    }
    return slots


def halved(planes: Planes) -> Float[Tensor, "batch channel half_height half_width"]:
    """The mean of each 2x2 square; at an odd edge, of the cells that are there.

    The edge is repeated by hand: compiled, the gradients of `ceil_mode` and of `F.pad` are wrong (torch 2.13).
    """
    height, width = planes.shape[-2:]
    if height % 2:
        planes = torch.cat([planes, planes[:, :, -1:]], 2)
    if width % 2:
        planes = torch.cat([planes, planes[:, :, :, -1:]], 3)
    return F.avg_pool2d(planes, 2)


def residual_block(
    x: Planes, weights: Weights, name: str, injection: Float[Tensor, "batch channel"], groups: int
) -> Planes:
    r"""One residual block with the context injected after its first convolution.

    $h_1=\mathrm{Conv}(\mathrm{SiLU}(\mathrm{GN}(h)))$, $h_2=h_1+\mathrm{MLP}(c)$,
    $h'=h+\mathrm{Conv}(\mathrm{SiLU}(\mathrm{GN}(h_2)))$.

    Paper: Eq. (23)-(25).
    """
    inner = F.silu(F.group_norm(x, groups, weights[f"{name}.gain_1"], weights[f"{name}.shift_1"]))
    inner = F.conv2d(inner, weights[f"{name}.first"], padding=1) + injection[:, :, None, None]
    inner = F.silu(F.group_norm(inner, groups, weights[f"{name}.gain_2"], weights[f"{name}.shift_2"]))
    return x + F.conv2d(inner, weights[f"{name}.second"], padding=1)


def split_heads(
    x: Float[Tensor, "batch token channel"], heads: int
) -> Float[Tensor, "batch head token size"]:
    """Channels as heads, before the tokens."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class ConvIR(Network):
    """The convolutional expert: local patterns at full resolution, wider ones below it."""

    config: ConvIRConfig
    _pair_positions: Tensor

    def __init__(self, config: ConvIRConfig | None = None, seed: int = 0) -> None:
        config = config or ConvIRConfig()
        super().__init__(config, Layout(_slots(config)), seed)
        table = cond.sinusoidal_positions(*config.pair_layout, config.pair_width)
        self.register_buffer("_pair_positions", table, persistent=False)

    def prepare(self, weights: Weights) -> Weights:
        """Kernels in the memory order that convolutions on channels-last pictures want."""
        ready = {
            name: weight.contiguous(memory_format=torch.channels_last) if weight.ndim == 4 else weight
            for name, weight in weights.items()
        }
        ready["positions"] = self._pair_positions.to(weights["down"].dtype)
        if self.config.conditioning == "latents":
            ready |= prepare_latents(weights, self.config.pair_head)
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
        keys = values = None
        if told.latents is not None:
            keys, values = (
                split_heads(F.linear(told.latents, projection), self.config.heads).contiguous()
                for projection in weights["cross.keys_values"].unbind(0)
            )
        driver = F.silu(told.context)
        injection = torch.stack(
            [
                F.linear(driver, weights[f"blocks.{block}.inject"], weights[f"blocks.{block}.inject_bias"])
                for block in range(BLOCKS)
            ],
            1,
        )
        return ConvEncoded(cells, injection, keys, values)

    def pair_tokens(
        self, weights: Weights, inputs: cond.Frames, outputs: cond.Frames
    ) -> Float[Tensor, "pair token channel"]:
        """Each pair at half resolution: convolutions, then one attention layer that compares distant places."""
        config = self.config
        dtype = weights["positions"].dtype
        pairs = cond.one_hot_pairs(inputs, outputs, config.values, dtype).flatten(0, 1)
        planes = F.silu(F.conv2d(cond.as_planes(pairs, config.layout), weights["pair.first"], padding=1))
        planes = F.conv2d(planes, weights["pair.second"], padding=1, stride=2)
        tokens = planes.flatten(2).transpose(1, 2) + weights["positions"]
        width = (config.pair_width,)
        projected = F.linear(F.layer_norm(tokens, width), weights["pair.qkv"].flatten(0, 1))
        query, key, value = (split_heads(part, config.heads) for part in projected.chunk(3, -1))
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        tokens = tokens + F.linear(attended, weights["pair.out"])
        hidden = F.gelu(F.linear(F.layer_norm(tokens, width), weights["pair.up"]))
        return tokens + F.linear(hidden, weights["pair.down"])

    def embed(self, weights: Weights, x_t: Tokens, encoded: ConvEncoded) -> Planes:
        """The embedded input: a 3x3 convolution of one-hot grids, in which a masked cell is the zero vector."""
        planes = cond.as_planes(
            cond.one_hot(x_t, self.config.values, encoded.cells.dtype), self.config.layout
        )
        return F.conv2d(planes, weights["embed.x_t"], padding=1) + encoded.cells

    def apply_once(self, weights: Weights, state: Planes, encoded: ConvEncoded) -> Planes:
        """Down and up the U once: a block above, a block below, and the skip connection between them."""
        above = residual_block(state, weights, "blocks.0", encoded.injection[:, 0], self.config.groups)
        below = F.conv2d(halved(above), weights["down"][:, :, None, None])
        below = residual_block(below, weights, "blocks.1", encoded.injection[:, 1], self.config.groups)
        if encoded.keys is not None and encoded.values is not None:
            below = below + self._read(weights, below, encoded.keys, encoded.values)
        below = F.conv2d(below, weights["up"][:, :, None, None])
        return above + F.interpolate(below, size=self.config.layout, mode="nearest")

    def _read(self, weights: Weights, planes: Planes, keys: Tensor, values: Tensor) -> Planes:
        """Each place below reads the demonstrations' latents."""
        tokens = planes.flatten(2).transpose(1, 2)
        query = F.linear(F.layer_norm(tokens, (tokens.shape[-1],)), weights["cross.query"])
        read = F.scaled_dot_product_attention(split_heads(query, self.config.heads), keys, values)
        told = F.linear(read.transpose(1, 2).flatten(2), weights["cross.out"])
        return told.transpose(1, 2).unflatten(2, tuple(planes.shape[-2:]))

    def readout(self, weights: Weights, state: Planes) -> CellLogProbs:
        """Normalise and project to the values; the mask has no logit."""
        normed = F.silu(F.group_norm(state, self.config.groups, weights["head.gain"], weights["head.shift"]))
        logits = F.conv2d(normed, weights["head.weight"], padding=1).float()
        return logits.flatten(2).transpose(1, 2) + weights["head.bias"].float()
