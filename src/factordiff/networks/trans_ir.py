"""Trans-IR: the iterative-refinement transformer. Paper: appendix "Transformer Backbone Architecture"."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.networks import attention
from factordiff.networks import conditioning as cond
from factordiff.networks.item_encoding import ItemEncoding
from factordiff.networks.latents import prepare_latents
from factordiff.networks.parameters import Weights
from factordiff.networks.refinement import Encoded, RefinementNetwork
from factordiff.networks.trans_config import TransIRConfig
from factordiff.networks.transformer import Block, Hidden, fold, plain_block, rotations, transformer_blocks
from factordiff.types import CellLogProbs, Tokens


class TransIR(RefinementNetwork):
    """The transformer expert: every cell attends to every other, and to what the demonstrations say."""

    config: TransIRConfig
    _positions: Tensor
    _patch_positions: Tensor
    _rotation: Tensor
    _patch_rotation: Tensor

    def __init__(self, config: TransIRConfig | None = None, seed: int | None = 0) -> None:
        config = config or TransIRConfig()
        super().__init__(config, seed, config.blocks)
        tables = {
            "_positions": cond.sinusoidal_positions(*config.layout, config.width),
            "_patch_positions": self._coarse(cond.sinusoidal_positions(*config.padded_layout, config.width)),
            "_rotation": rotations(*config.layout, config.head_size),
            "_patch_rotation": rotations(*config.padded_layout, config.head_size, config.pair_patch),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def _coarse(self, positions: Float[Tensor, "cell channel"]) -> Float[Tensor, "patch channel"]:
        """The positions of patches: the mean of their cells'."""
        (height, width), patch = self.config.padded_layout, self.config.pair_patch
        return positions.view(height // patch, patch, width // patch, patch, -1).mean((1, 3)).flatten(0, 1)

    def prepare(self, weights: Weights) -> Weights:
        """Pad the heads, join the embeddings into one table, place the positions."""
        config = self.config
        to = attention.padded_head(config.head_size)
        dtype = weights["embed.join"].dtype
        ready = dict(weights)
        for name in self.blocks:
            ready[f"{name}.qkv"] = attention.pad_heads(weights[f"{name}.qkv"], -2, to).flatten(0, 2)
            ready[f"{name}.out"] = attention.pad_heads(weights[f"{name}.out"], -1, to).flatten(1)
            if config.literal:
                bias = weights[f"{name}.qkv_bias"]
                ready[f"{name}.qkv_bias"] = attention.pad_heads(bias, -1, to).flatten()
        ready["table.x_t"], ready["table.query"] = self._tables(weights)
        ready["positions"], ready["patch_positions"] = self._place(weights, dtype)
        if config.conditioning == "latents":
            ready |= prepare_latents(weights, config.head_size)
            ready |= self._pair_blocks(ready)
        if config.rotary:
            ready["rotation"] = self._rotation.to(dtype)
            ready["patch_rotation"] = self._patch_rotation.to(dtype)
        return ready

    def _tables(self, weights: Weights) -> tuple[Tensor, Tensor]:
        """What each value of a cell of x_t adds to its embedding, and each channel of what is told.

        W [E(x_t) || E(c)] is a sum of tables: no product over all cells is needed.
        """
        join = weights["embed.join"]
        if self.config.literal:
            # One table E for all canvases: x_t, the query, then input and output of each demonstration.
            each = torch.einsum("vc,dnc->nvd", weights["embed.table"], join)
            return each[0], each[1:, : self.config.values].flatten(0, 1)
        x_t, query = weights["embed.x_t"] @ join[0].T, weights["embed.query"] @ join[1].T
        if self.config.conditioning == "paper":
            query = torch.cat([query, weights["embed.demonstrations"]])
        return x_t, query

    def _pair_blocks(self, ready: Weights) -> Weights:
        """The same blocks as the demonstrations see them: their modulation is constant, so it is folded in."""
        parts = [ready["pair_modulation.scale_shift"], ready["pair_modulation.gate"]]
        folded = {}
        for name, modulation in zip(self.blocks, torch.cat(parts, 2).flatten(1, 2), strict=True):
            for part, weight in fold(self._block(ready, name), modulation)._asdict().items():
                folded[f"pair_{name}.{part}"] = weight
        return folded

    def _place(self, weights: Weights, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        if self.config.positions == "sinusoidal":
            return self._positions.to(dtype), self._patch_positions.to(dtype)
        (height, width), (tall, wide) = self.config.layout, self.config.padded_layout
        table = weights["positions.row"][:tall, None] + weights["positions.column"][None, :wide]
        return table[:height, :width].flatten(0, 1), self._coarse(table.flatten(0, 1))

    def embed_item(self, weights: Weights, item: ItemEncoding) -> Hidden:
        """A sum of tables, of positions and of what the demonstrations say there."""
        cells = item.channels @ weights["table.query"] + weights["positions"]
        return cells if item.field is None else cells + item.field.flatten(1, 2)

    def pair_tokens(self, weights: Weights, inputs: cond.Frames, outputs: cond.Frames) -> Hidden:
        """Each pair's cells (or patches of cells), run once through the same blocks."""
        config = self.config
        (height, width), (tall, wide), patch = config.layout, config.padded_layout, config.pair_patch
        pairs = cond.one_hot_pairs(inputs, outputs, config.values, weights["positions"].dtype).flatten(0, 1)
        if patch > 1:
            planes = F.pad(pairs.unflatten(1, config.layout), (0, 0, 0, wide - width, 0, tall - height))
            tiles = planes.view(-1, tall // patch, patch, wide // patch, patch, 2 * config.values)
            pairs = tiles.permute(0, 1, 3, 2, 4, 5).flatten(3).flatten(1, 2)
        tokens = pairs @ weights["embed.pair"] + weights["patch_positions"]
        for name in self.blocks:
            tokens = plain_block(
                tokens,
                self._block(weights, f"pair_{name}"),
                config.heads,
                config.head_size**-0.5,
                weights.get("patch_rotation"),
                self.fused,
            )
        return tokens

    def _block(self, weights: Weights, name: str) -> Block:
        found = {part: weights.get(f"{name}.{part}") for part in Block._fields}
        return Block(**found)  # type: ignore[arg-type]

    def embed(self, weights: Weights, x_t: Tokens, encoded: Encoded) -> Hidden:
        """$h = W [E(x_t) || E(c)] + PE$. Paper: Eq. (14)."""
        table = weights["table.x_t"]
        return cond.one_hot(x_t, table.shape[0], table.dtype) @ table + encoded.cells

    def apply_once(self, weights: Weights, state: Hidden, encoded: Encoded) -> Hidden:
        """All blocks, once."""
        extras: list[tuple[Tensor, Tensor] | None] = [None for _ in self.blocks]
        if encoded.keys is not None and encoded.values is not None:
            extras = list(zip(encoded.keys.unbind(1), encoded.values.unbind(1), strict=True))
        return transformer_blocks(
            state,
            [self._block(weights, name) for name in self.blocks],
            encoded.modulation,
            extras,
            self.config.heads,
            self.config.head_size**-0.5,
            weights.get("rotation"),
            self.fused,
            self.config.literal,
        )

    def readout(self, weights: Weights, state: Hidden) -> CellLogProbs:
        """Normalise, project to the values; the mask has no logit. Paper: Eq. (21).

        The paper computes the mask's logit and then sets it to minus infinity, so that its weights mean nothing.
        """
        # Only the paper's own norm has a gain and a shift.
        gain, shift = weights.get("head.gain"), weights.get("head.shift")
        normed = F.layer_norm(state, (state.shape[-1],), gain, shift)
        return F.linear(normed, weights["head.weight"]).float() + weights["head.bias"].float()
