"""Latents: what a few learned queries read from each demonstration, averaged over the demonstrations.

The latents tell the rule; the field, the demonstrations' own tokens averaged place by place, tells where it happens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.networks import attention
from factordiff.networks.conditioning import Present, mean_over_frames
from factordiff.networks.parameters import Slot, Weights, linear

BlockLatents = Float[Tensor, "item block head latent size"]  # keys or values of every block


def latent_slots(
    latents: int, width: int, heads: int, context: int, summary: int = 16, expansion: int = 2
) -> dict[str, Slot]:
    """The weights that read latents from a pair's tokens, and turn `summary` channels of each into a context vector."""
    head = width // heads
    return {
        "latents.queries": Slot((heads, latents, head), std=1.0),
        "latents.keys_values": Slot((2, heads, head, width), width**-0.5, matrices=(2, width, width)),
        "latents.out": Slot((width, heads, head), width**-0.5, matrices=(1, width, width)),
        "latents.base": Slot((latents, width), std=1.0),
        "latents.up": linear(expansion * width, width),
        "latents.down": linear(width, expansion * width),
        "latents.summary": linear(summary, width),
        "latents.context": linear(context, summary * latents),
        "latents.context_bias": Slot((context,)),
    }


def prepare_latents(weights: Weights, head: int) -> Weights:
    """The latents' attention with padded heads, flattened for one matrix product each."""
    to = attention.padded_head(head)
    return {
        "latents.queries": attention.pad_heads(weights["latents.queries"], -1, to),
        "latents.keys_values": attention.pad_heads(weights["latents.keys_values"], -2, to).flatten(0, 2),
        "latents.out": attention.pad_heads(weights["latents.out"], -1, to).flatten(1),
    }


def read_latents(
    weights: Weights, tokens: Float[Tensor, "pair token channel"], head: int
) -> Float[Tensor, "pair latent channel"]:
    """What the learned queries read from each pair."""
    queries = weights["latents.queries"]
    heads = queries.shape[0]
    width = tokens.shape[-1]
    keys_values = F.linear(F.layer_norm(tokens, (width,)), weights["latents.keys_values"])
    keys, values = keys_values.unflatten(-1, (2, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    read = F.scaled_dot_product_attention(
        queries.expand(tokens.shape[0], -1, -1, -1), keys, values, scale=head**-0.5
    )
    latents = weights["latents.base"] + F.linear(read.transpose(1, 2).flatten(2), weights["latents.out"])
    hidden = F.gelu(F.linear(F.layer_norm(latents, (width,)), weights["latents.up"]))
    return latents + F.linear(hidden, weights["latents.down"])


def with_field(
    latents: Float[Tensor, "pair latent channel"], tokens: Float[Tensor, "pair token channel"]
) -> Float[Tensor, "pair latent_and_token channel"]:
    """The latents, and behind them the tokens themselves: what the pair says place by place."""
    return torch.cat([latents, F.layer_norm(tokens, (tokens.shape[-1],))], 1)


def average_field(
    tokens: Float[Tensor, "item frame token channel"],
    present: Present,
    projection: Float[Tensor, "width channel"],
    coarse: tuple[int, int],
    layout: tuple[int, int],
) -> Float[Tensor, "item height width_of_canvas width"]:
    """What the demonstrations say at each place, on average, for the cells of that place to add to themselves."""
    field = F.linear(mean_over_frames(tokens, present), projection).unflatten(1, coarse)
    patch = -(-layout[0] // coarse[0]), -(-layout[1] // coarse[1])
    field = field.repeat_interleave(patch[0], 1).repeat_interleave(patch[1], 2)
    return field[:, : layout[0], : layout[1]]


def average_latents(
    read: Float[Tensor, "item frame latent channel"], present: Present
) -> Float[Tensor, "item latent channel"]:
    """The average over the demonstrations that are there, normalised: their order does not matter."""
    return F.layer_norm(mean_over_frames(read, present), (read.shape[-1],))


def latent_context(
    weights: Weights, latents: Float[Tensor, "item latent channel"]
) -> Float[Tensor, "item context"]:
    """The latents' part of the context vector: a short summary of each, side by side."""
    summary = F.silu(F.linear(latents, weights["latents.summary"]).flatten(1))
    return F.linear(summary, weights["latents.context"], weights["latents.context_bias"])


def latent_keys_values(
    weights: Weights, blocks: list[str], latents: Float[Tensor, "item latent channel"], heads: int
) -> tuple[BlockLatents, BlockLatents]:
    """The latents as keys and values beside the cells' of every block, by the block's own projections."""
    each = []
    for name in blocks:
        qkv = weights[f"{name}.qkv"]
        both = F.linear(latents, qkv[qkv.shape[0] // 3 :]).unflatten(-1, (2, heads, -1))
        each.append(both.permute(2, 0, 3, 1, 4).contiguous().unbind(0))
    keys, values = zip(*each, strict=True)
    return torch.stack(keys, 1), torch.stack(values, 1)
