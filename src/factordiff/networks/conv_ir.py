"""Conv-IR: the iterative-refinement U-shaped convnet. Paper: appendix "Convolutional Backbone Architecture"."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.networks import attention
from factordiff.networks import conditioning as cond
from factordiff.networks.conv_config import BLOCKS, ConvIRConfig
from factordiff.networks.convnet import Planes, attend, convolved, halved, same_size
from factordiff.networks.item_encoding import ItemEncoding
from factordiff.networks.latents import prepare_latents
from factordiff.networks.parameters import Weights
from factordiff.networks.refinement import Encoded, RefinementNetwork
from factordiff.networks.transformer import rotations
from factordiff.types import CellLogProbs, Tokens


class ConvIR(RefinementNetwork):
    """The convolutional expert: local patterns at full resolution, wider ones below it, and a look at all cells."""

    config: ConvIRConfig
    _positions: Tensor
    _pair_positions: Tensor
    _rotation: Tensor
    _pair_rotation: Tensor

    def __init__(self, config: ConvIRConfig | None = None, seed: int | None = 0) -> None:
        config = config or ConvIRConfig()
        super().__init__(config, seed, BLOCKS)
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
        for name in self.blocks:
            ready[f"{name}.qkv"] = attention.pad_heads(weights[f"{name}.qkv"], -2, to).flatten(0, 2)
            ready[f"{name}.out"] = attention.pad_heads(weights[f"{name}.out"], -1, to).flatten(1)
        ready["positions"] = cond.as_planes(self._positions.to(dtype)[None], self.config.layout)
        ready["pair_positions"] = cond.as_planes(
            self._pair_positions.to(dtype)[None], self.config.pair_layout
        )
        ready["rotation"] = self._rotation.to(dtype)
        ready["pair_rotation"] = self._pair_rotation.to(dtype)
        return ready

    def embed_item(self, weights: Weights, item: ItemEncoding) -> Planes:
        """The told canvases convolved, and what the demonstrations say; with latents also where each cell is."""
        planes = cond.as_planes(item.channels, self.config.layout)
        cells = same_size(planes, weights["embed.query"]) + weights["embed.bias"]
        if item.field is not None:
            cells = cells + item.field.permute(0, 3, 1, 2)
        return cells if item.latents is None else cells + weights["positions"]

    def pair_tokens(
        self, weights: Weights, inputs: cond.Frames, outputs: cond.Frames
    ) -> Float[Tensor, "pair token channel"]:
        """Each pair at half resolution, once through both blocks."""
        config = self.config
        pairs = cond.one_hot_pairs(inputs, outputs, config.values, weights["positions"].dtype).flatten(0, 1)
        planes = F.conv2d(cond.as_planes(pairs, config.layout), weights["pair.embed"], padding=1, stride=2)
        planes = planes + weights["pair_positions"]
        for block in range(BLOCKS):
            name, (look, add) = f"blocks.{block}", weights["pair.gate"][block].unbind(0)
            rotation, scale = weights["pair_rotation"], config.head_size**-0.5
            planes = attend(
                planes, weights, name, look, None, None, rotation, config.heads, scale, self.fused
            )
            injection = weights["pair.injection"][block].expand(len(planes), -1)
            planes = planes + add[:, None, None] * convolved(planes, weights, name, injection, config.groups)
        return planes.flatten(2).transpose(1, 2)

    def embed(self, weights: Weights, x_t: Tokens, encoded: Encoded) -> Planes:
        """The embedded input: a convolution of one-hot grids, in which a masked cell is the zero vector.

        Paper: Eq. (22), whose one convolution of all canvases is here a sum of two: what is told is convolved once.
        """
        planes = cond.as_planes(
            cond.one_hot(x_t, self.config.values, encoded.cells.dtype), self.config.layout
        )
        return same_size(planes, weights["embed.x_t"]) + encoded.cells

    def apply_once(self, weights: Weights, state: Planes, encoded: Encoded) -> Planes:
        """Down and up the U once: a block above, a block below, and the skip connection between them.

        The paper's main text has a U with skip connections, its appendix two residual blocks and nothing between
        them. `literal` is the reading in which both hold: the second block's convolutions work on the halved picture,
        and what they say is enlarged and added to their input, which is the skip connection.
        """
        if self.config.literal:
            above = self._convolve(state, weights, 0, encoded)
            said = convolved(
                halved(above), weights, "blocks.1", encoded.modulation[:, 1, 0], self.config.groups
            )
            return above + F.interpolate(said, size=self.config.layout, mode="nearest")
        above = self._look(state, weights, 0, encoded)
        above = self._convolve(above, weights, 0, encoded)
        above = self._look(above, weights, 1, encoded)
        below = self._convolve(halved(above), weights, 1, encoded)
        below = F.conv2d(below, weights["up"][:, :, None, None])
        return above + F.interpolate(below, size=self.config.layout, mode="nearest")

    def _look(self, planes: Planes, weights: Weights, block: int, encoded: Encoded) -> Planes:
        """Cells attend to all cells and to the latents; with the paper's conditioning there are none to attend to."""
        if encoded.keys is None or encoded.values is None:
            return planes
        modulation, extra = encoded.modulation[:, block], (encoded.keys[:, block], encoded.values[:, block])
        return attend(
            planes,
            weights,
            f"blocks.{block}",
            modulation[:, 2:3],
            modulation[:, :2],
            extra,
            weights["rotation"],
            self.config.heads,
            self.config.head_size**-0.5,
            self.fused,
        )

    def _convolve(self, planes: Planes, weights: Weights, block: int, encoded: Encoded) -> Planes:
        """One residual block: the paper's injects the context, ours also scales and gates by it."""
        modulation, name, groups = encoded.modulation[:, block], f"blocks.{block}", self.config.groups
        if encoded.keys is None:
            return planes + convolved(planes, weights, name, modulation[:, 0], groups)
        scale, injection, gate = modulation[:, 3:].unbind(1)
        return planes + gate[:, :, None, None] * convolved(planes, weights, name, injection, groups, scale)

    def readout(self, weights: Weights, state: Planes) -> CellLogProbs:
        """Normalise and project to the values; the mask has no logit. Paper: Eq. (27)."""
        normed = F.group_norm(state, self.config.groups, weights["head.gain"], weights["head.shift"])
        if self.config.conditioning == "paper":
            normed = F.silu(normed)
        logits = same_size(normed, weights["head.weight"]).float()
        return logits.flatten(2).transpose(1, 2) + weights["head.bias"].float()
