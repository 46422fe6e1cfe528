"""Trans-IR: the iterative-refinement transformer. Paper: appendix "Transformer Backbone Architecture"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts import conditioning as cond
from factordiff.experts.parameters import Layout, Slot, Weights, linear
from factordiff.experts.refinement import Network, NetworkConfig
from factordiff.types import CellLogProbs, Tokens

LONGEST_SIDE = 32  # rows and columns of the learned positions: a shape that no data set decides

Hidden = Float[Tensor, "batch cell channel"]
Tokenised = Float[Tensor, "pair token channel"]


@dataclass(frozen=True)
class TransIRConfig(NetworkConfig):
    """Trans-IR: d=144, two blocks, four heads of 36, FFN 4x, context dimension 144."""

    blocks: int = 2
    heads: int = 4
    expansion: int = 4
    encoder: int = 64
    positions: str = "sinusoidal"
    pair_patch: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise InvalidInput(f"width: expected a multiple of heads={self.heads}, got {self.width}")
        if self.positions not in ("sinusoidal", "learned"):
            raise InvalidInput(f"positions: expected sinusoidal or learned, got {self.positions!r}")
        if self.pair_patch < 1 or any(side % self.pair_patch for side in self.layout):
            raise InvalidInput(
                f"pair_patch: expected a divisor of both sides of the canvas {self.layout}, got {self.pair_patch}"
            )

    @property
    def head_size(self) -> int:
        """Channels of one attention head."""
        return self.width // self.heads


class TransEncoded(NamedTuple):
    """An item as Trans-IR's passes need it; keys and values are None without latents."""

    cells: Float[Tensor, "item cell channel"]
    modulation: Float[Tensor, "item block six channel"]
    keys: Float[Tensor, "item block head latent size"] | None
    values: Float[Tensor, "item block head latent size"] | None


def _slots(config: TransIRConfig) -> dict[str, Slot]:
    d, heads, size = config.width, config.heads, config.head_size
    slots = {
        "z_high": Slot((d,), std=0.02),
        "z_low": Slot((d,), std=0.02),
        "embed.x_t": Slot((config.values + 1, d), std=1.0),
        "embed.query": Slot((config.values, d), std=1.0),
        "embed.join": Slot((2, d, d), (2 * d) ** -0.5, matrices=(2, d, d)),
        "head.weight": Slot((config.values, d), 0.0 if config.head == "zero" else d**-0.5),
        "head.bias": Slot((config.values,)),
    }
    for block in range(config.blocks):
        slots |= {
            f"blocks.{block}.qkv": Slot((3, heads, size, d), d**-0.5, matrices=(3, d, d)),
            f"blocks.{block}.out": Slot((d, heads, size), d**-0.5, matrices=(1, d, d)),
            f"blocks.{block}.up": linear(config.expansion * d, d),
            f"blocks.{block}.down": linear(d, config.expansion * d),
            f"blocks.{block}.modulation": Slot((6, d, config.context), matrices=(6, d, config.context)),
            f"blocks.{block}.modulation_bias": Slot((6, d)),
        }
    if config.positions == "learned":
        slots["positions.row"] = Slot((LONGEST_SIDE, d), std=0.5)
        slots["positions.column"] = Slot((LONGEST_SIDE, d), std=0.5)
    if config.conditioning == "paper":
        slots |= cond.paper_slots(config.values, config.encoder, config.context)
        slots["embed.demonstrations"] = Slot((config.slots * 2 * config.values, d), std=0.5)
    else:
        slots |= cond.grid_encoder_slots("query", config.values, config.encoder, config.context)
        slots |= cond.latent_slots(config.latents, d, heads, config.context)
        slots["embed.pair"] = Slot((config.pair_patch**2 * 2 * config.values, d), std=0.5)
        # The pairs run through the same blocks with a modulation of their own, whose gates start open.
        slots["pair_modulation.scale_shift"] = Slot((config.blocks, 2, 2, d))
        slots["pair_modulation.gate"] = Slot((config.blocks, 2, 1, d), mean=1.0)
    return slots


def transformer_block(
    x: Hidden,
    qkv: Tensor,
    out: Tensor,
    up: Tensor,
    down: Tensor,
    modulation: Float[Tensor, "#batch six channel"],
    extra: tuple[Tensor, Tensor] | None,
    heads: int,
    scale: float,
) -> Hidden:
    r"""One adaLN-Zero block: attention, then the FFN, both modulated.

    $h' = h + \alpha_1\,\mathrm{Attn}((1+\gamma_1)\,\mathrm{norm}(h)+\beta_1)$, and the FFN likewise. The appendix
    writes a bare $\gamma$; zero-initialised, that would start the block dead. `extra` are keys and values that
    every cell sees beside the cells.

    Paper: Eq. (18)-(20).
    """
    width = (x.shape[-1],)
    gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = modulation.unsqueeze(2).unbind(1)
    normed = F.layer_norm(x, width) * (1.0 + gamma_1) + beta_1
    query, key, value = F.linear(normed, qkv).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    if extra is not None:
        key, value = torch.cat([key, extra[0]], 2), torch.cat([value, extra[1]], 2)
    attended = F.scaled_dot_product_attention(query, key, value, scale=scale)
    x = x + alpha_1 * F.linear(attended.transpose(1, 2).flatten(2), out)
    normed = F.layer_norm(x, width) * (1.0 + gamma_2) + beta_2
    return x + alpha_2 * F.linear(F.gelu(F.linear(normed, up)), down)


class TransIR(Network):
    """The transformer expert: every cell attends to every other, and to what the demonstrations say."""

    config: TransIRConfig
    _positions: Tensor
    _patch_positions: Tensor

    def __init__(self, config: TransIRConfig | None = None, seed: int = 0) -> None:
        config = config or TransIRConfig()
        super().__init__(config, Layout(_slots(config)), seed)
        height, width = config.layout
        patch = config.pair_patch
        table = cond.sinusoidal_positions(height, width, config.width)
        self.register_buffer("_positions", table, persistent=False)
        coarse = table.view(height // patch, patch, width // patch, patch, -1).mean((1, 3)).flatten(0, 1)
        self.register_buffer("_patch_positions", coarse, persistent=False)

    def prepare(self, weights: Weights) -> Weights:
        """Pad the heads, join the embeddings into one table, place the positions."""
        config = self.config
        to = cond.padded_head(config.head_size)
        join = weights["embed.join"]
        ready = dict(weights)
        for block in range(config.blocks):
            ready[f"blocks.{block}.qkv"] = cond.pad_heads(weights[f"blocks.{block}.qkv"], -2, to).flatten(
                0, 2
            )
            ready[f"blocks.{block}.out"] = cond.pad_heads(weights[f"blocks.{block}.out"], -1, to).flatten(1)
        # W [E(x_t) || E(c)] is a sum of two tables: no product over all cells is needed.
        ready["table.x_t"] = weights["embed.x_t"] @ join[0].T
        ready["table.query"] = weights["embed.query"] @ join[1].T
        ready["positions"], ready["patch_positions"] = self._place(weights, join.dtype)
        if config.conditioning == "paper":
            ready["table.query"] = torch.cat([ready["table.query"], weights["embed.demonstrations"]])
        else:
            ready |= cond.prepare_latents(weights, config.head_size)
            parts = [weights["pair_modulation.scale_shift"], weights["pair_modulation.gate"]]
            ready["pair_modulation"] = torch.cat(parts, 2).flatten(1, 2)
        return ready

    def _place(self, weights: Weights, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        if self.config.positions == "sinusoidal":
            return self._positions.to(dtype), self._patch_positions.to(dtype)
        height, width = self.config.layout
        patch = self.config.pair_patch
        table = weights["positions.row"][:height, None] + weights["positions.column"][None, :width]
        coarse = table.view(height // patch, patch, width // patch, patch, -1).mean((1, 3))
        return table.flatten(0, 1), coarse.flatten(0, 1)

    def encode_with(
        self,
        weights: Weights,
        query: Int[Tensor, "item cell"],
        inputs: cond.Frames,
        outputs: cond.Frames,
        present: Bool[Tensor, "item frame"],
    ) -> TransEncoded:
        """Embed the query, read the demonstrations, and compute every block's modulation."""
        config = self.config
        dtype = weights["positions"].dtype
        channels = cond.one_hot(query, config.values, dtype)
        keys = values = None
        if config.conditioning == "paper":
            shown = cond.demonstration_channels(inputs, outputs, present, config.slots, config.values, dtype)
            channels = torch.cat([channels, shown], -1)
            context = cond.paper_context(
                weights, query, inputs, outputs, present, config.values, config.layout
            )
        else:
            latents = cond.read_latents(
                weights, self._pair_tokens(weights, inputs, outputs), present, config.head_size
            )
            context = cond.encode_query(weights, query, config.values, config.layout)
            context = context + cond.latent_context(weights, latents)
            keys, values = self._latent_keys_values(weights, latents)
        cells = channels @ weights["table.query"] + weights["positions"]
        driver = F.silu(context)
        modulation = torch.stack(
            [
                F.linear(driver, weights[f"blocks.{block}.modulation"].flatten(0, 1)).unflatten(-1, (6, -1))
                + weights[f"blocks.{block}.modulation_bias"]
                for block in range(config.blocks)
            ],
            1,
        )
        return TransEncoded(cells, modulation, keys, values)

    def _pair_tokens(self, weights: Weights, inputs: cond.Frames, outputs: cond.Frames) -> Tokenised:
        """Each pair's cells (or patches of cells), run once through the same blocks."""
        config = self.config
        height, width = config.layout
        patch = config.pair_patch
        pairs = cond.one_hot_pairs(inputs, outputs, config.values, weights["positions"].dtype).flatten(0, 1)
        if patch > 1:
            tiles = pairs.view(-1, height // patch, patch, width // patch, patch, 2 * config.values)
            pairs = tiles.permute(0, 1, 3, 2, 4, 5).flatten(3).flatten(1, 2)
        tokens = pairs @ weights["embed.pair"] + weights["patch_positions"]
        modulation = weights["pair_modulation"].unsqueeze(0)
        for block in range(config.blocks):
            tokens = self._block(weights, block, tokens, modulation[:, block], None)
        return tokens

    def _latent_keys_values(
        self, weights: Weights, latents: Float[Tensor, "item latent channel"]
    ) -> tuple[Tensor, Tensor]:
        """The latents as keys and values of every block, by the block's own projections."""
        per_block = []
        for block in range(self.config.blocks):
            projection = weights[f"blocks.{block}.qkv"]
            per_block.append(F.linear(latents, projection[projection.shape[0] // 3 :]))
        both = torch.stack(per_block, 1).unflatten(-1, (2, self.config.heads, -1))
        keys, values = both.permute(3, 0, 1, 4, 2, 5).contiguous().unbind(0)
        return keys, values

    def _block(
        self,
        weights: Weights,
        block: int,
        x: Hidden,
        modulation: Float[Tensor, "#batch six channel"],
        extra: tuple[Tensor, Tensor] | None,
    ) -> Hidden:
        return transformer_block(
            x,
            weights[f"blocks.{block}.qkv"],
            weights[f"blocks.{block}.out"],
            weights[f"blocks.{block}.up"],
            weights[f"blocks.{block}.down"],
            modulation,
            extra,
            self.config.heads,
            self.config.head_size**-0.5,
        )

    def embed(self, weights: Weights, x_t: Tokens, encoded: TransEncoded) -> Hidden:
        """$h = W [E(x_t) || E(c)] + PE$."""
        table = weights["table.x_t"]
        return cond.one_hot(x_t, table.shape[0], table.dtype) @ table + encoded.cells

    def apply_once(self, weights: Weights, state: Hidden, encoded: TransEncoded) -> Hidden:
        """All blocks, once."""
        for block in range(self.config.blocks):
            extra = None
            if encoded.keys is not None and encoded.values is not None:
                extra = (encoded.keys[:, block], encoded.values[:, block])
            state = self._block(weights, block, state, encoded.modulation[:, block], extra)
        return state

    def readout(self, weights: Weights, state: Hidden) -> CellLogProbs:
        """Normalise, project to the values; the mask has no logit. Paper: appendix "Output Projection"."""
        normed = F.layer_norm(state, (state.shape[-1],))
        return F.linear(normed, weights["head.weight"]).float() + weights["head.bias"].float()
