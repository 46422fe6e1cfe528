r"""From the query and its demonstrations to what the cells are told.

Two ways, both computed once per query:

`paper`: the demonstrations lie as channels beside the query (three slots, a missing one is zero), and
$c = \mathrm{MLP}(\mathrm{Pool}(\mathrm{Conv}(query))) + \frac1K\sum_k \mathrm{PairEnc}(in_k, out_k)$ modulates
the blocks. Pooling over positions loses where things are, so rules that have a direction are read poorly.

`latents`: a few learned queries attend to the cells of each encoded pair; what they read is averaged over the
pairs, so their order is irrelevant and any number will do. The latents are keys and values for the cells, and
together they give the context vector.

Paper: appendix "Context Conditioning".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.experts.parameters import Slot, Weights, convolution, linear
from factordiff.streams import hash_words

Frames = Int[Tensor, "item frame cell"]
Present = Bool[Tensor, "item frame"]


def one_hot(tokens: Int[Tensor, "*shape"], values: int, dtype: torch.dtype) -> Float[Tensor, "*shape value"]:
    """One-hot vectors; whatever is not a value (the mask) is the zero vector."""
    return (tokens.unsqueeze(-1) == torch.arange(values, device=tokens.device)).to(dtype)


def sinusoidal_positions(height: int, width: int, channels: int) -> Float[Tensor, "cell channel"]:
    r"""2D positions $[\sin\omega_k i, \cos\omega_k i, \sin\omega_k j, \cos\omega_k j]$, $\omega_k = 10000^{-4k/d}$.

    Paper: appendix "2D Positional Encoding".
    """
    k = torch.arange(1, -(-channels // 4) + 1, dtype=torch.float64)
    omega = 10000.0 ** (-4.0 * k / channels)
    i = torch.arange(height, dtype=torch.float64)[:, None, None] * omega
    j = torch.arange(width, dtype=torch.float64)[None, :, None] * omega
    parts = torch.broadcast_tensors(i.sin(), i.cos(), j.sin(), j.cos())
    return torch.stack(parts, -1).reshape(height * width, -1)[:, :channels].float()


def mean_over_frames(
    values: Float[Tensor, "item frame *rest"], present: Present
) -> Float[Tensor, "item *rest"]:
    """The average over the frames that are there; zero where there is none."""
    weight = present.to(values.dtype)
    weight = weight / weight.sum(1, keepdim=True).clamp(min=1.0)
    return (values * weight.reshape(*weight.shape, *(1,) * (values.ndim - 2))).sum(1)


# Grid encoder: two convolutions, pooling, a small MLP.


def grid_encoder_slots(name: str, channels: int, hidden: int, context: int) -> dict[str, Slot]:
    """The weights of a grid encoder for one-hot grids of that many channels."""
    return {
        f"{name}.first": Slot(
            (hidden, channels, 3, 3), std=0.5
        ),  # one-hot input: an embedding, not a hidden matrix
        f"{name}.first_bias": Slot((hidden,)),
        f"{name}.second": convolution(hidden, hidden),
        f"{name}.second_bias": Slot((hidden,)),
        f"{name}.up": linear(hidden, hidden),
        f"{name}.up_bias": Slot((hidden,)),
        f"{name}.out": linear(context, hidden),
    }


def encode_grid(
    weights: Weights, name: str, grid: Float[Tensor, "batch channel height width"]
) -> Float[Tensor, "batch context"]:
    r"""$\mathrm{MLP}(\mathrm{Pool}(\mathrm{ConvNet}(grid)))$."""
    x = grid.contiguous(memory_format=torch.channels_last)
    x = F.silu(F.conv2d(x, weights[f"{name}.first"], weights[f"{name}.first_bias"], padding=1))
    x = F.silu(F.conv2d(x, weights[f"{name}.second"], weights[f"{name}.second_bias"], padding=1))
    pooled = x.mean((-2, -1))
    return F.linear(
        F.silu(F.linear(pooled, weights[f"{name}.up"], weights[f"{name}.up_bias"])), weights[f"{name}.out"]
    )


def as_planes(
    cells: Float[Tensor, "batch cell channel"], layout: tuple[int, int]
) -> Float[Tensor, "batch channel height width"]:
    """Cells as a picture (channels last in memory: no copy)."""
    return cells.unflatten(1, layout).permute(0, 3, 1, 2)


def encode_query(
    weights: Weights, query: Int[Tensor, "item cell"], values: int, layout: tuple[int, int]
) -> Float[Tensor, "item context"]:
    """The query's own part of the context vector."""
    dtype = weights["query.first"].dtype
    return encode_grid(weights, "query", as_planes(one_hot(query, values, dtype), layout))


def one_hot_pairs(
    inputs: Frames, outputs: Frames, values: int, dtype: torch.dtype
) -> Float[Tensor, "item frame cell channel"]:
    """Each demonstration's input and output joined channel-wise."""
    return torch.cat([one_hot(inputs, values, dtype), one_hot(outputs, values, dtype)], -1)


# The paper's conditioning.


def paper_slots(values: int, hidden: int, context: int) -> dict[str, Slot]:
    """The weights of the paper's context embedding."""
    return grid_encoder_slots("query", values, hidden, context) | grid_encoder_slots(
        "pair", 2 * values, hidden, context
    )


def encode_pairs(
    weights: Weights, inputs: Frames, outputs: Frames, values: int, layout: tuple[int, int]
) -> Float[Tensor, "item frame context"]:
    """The paper's encoding of each pair, to be averaged and added to the query's. Paper: Eq. (26)."""
    pairs = one_hot_pairs(inputs, outputs, values, weights["pair.first"].dtype).flatten(0, 1)
    return encode_grid(weights, "pair", as_planes(pairs, layout)).unflatten(0, tuple(inputs.shape[:2]))


def demonstration_channels(
    inputs: Frames, outputs: Frames, present: Present, slots: int, values: int, dtype: torch.dtype
) -> Float[Tensor, "item cell channel"]:
    """The first `slots` demonstrations as channels beside the query; a missing one is zero."""
    pairs = one_hot_pairs(inputs, outputs, values, dtype) * present[:, :, None, None].to(dtype)
    pairs = pairs[:, :slots]
    channels = pairs.transpose(1, 2).flatten(2)
    return F.pad(channels, (0, 2 * values * slots - channels.shape[-1]))


def in_canonical_order(inputs: Frames, outputs: Frames, present: Present) -> tuple[Frames, Frames, Present]:
    """The demonstrations sorted by a hash of their content, missing ones last: slots without a first and a last."""
    frames = torch.cat([inputs, outputs], -1)
    place = torch.arange(frames.shape[-1], device=frames.device)
    key = (
        hash_words(frames, place).sum(-1) // 2
    )  # every (value, place) counts; less than the missing ones' key
    order = torch.where(present, key, torch.iinfo(torch.int64).max).argsort(1)
    cells = order.unsqueeze(-1).expand_as(inputs)
    return inputs.gather(1, cells), outputs.gather(1, cells), present.gather(1, order)


# Latents.


def latent_slots(latents: int, width: int, heads: int, context: int) -> dict[str, Slot]:
    """The weights that read latents from a pair's tokens and turn them into a context vector."""
    head = width // heads
    return {
        "latents.queries": Slot((heads, latents, head), std=1.0),
        "latents.keys_values": Slot((2, heads, head, width), width**-0.5, matrices=(2, width, width)),
        "latents.out": Slot((width, heads, head), width**-0.5, matrices=(1, width, width)),
        "latents.base": Slot((latents, width), std=1.0),
        "latents.up": linear(2 * width, width),
        "latents.down": linear(width, 2 * width),
        "latents.summary": linear(16, width),
        "latents.context": linear(context, 16 * latents),
        "latents.context_bias": Slot((context,)),
    }


def pad_heads(weight: Tensor, dim: int, to: int) -> Tensor:
    """Zero rows up to a head size that attention kernels like; they change nothing."""
    missing = to - weight.shape[dim]
    return F.pad(weight, (0, 0) * (weight.ndim - 1 - dim % weight.ndim) + (0, missing)) if missing else weight


def padded_head(size: int) -> int:
    """The head size stored for attention: the next multiple of 8."""
    return -(-size // 8) * 8


def prepare_latents(weights: Weights, head: int) -> Weights:
    """The latents' attention with padded heads, flattened for one matrix product each."""
    to = padded_head(head)
    return {
        "latents.queries": pad_heads(weights["latents.queries"], -1, to),
        "latents.keys_values": pad_heads(weights["latents.keys_values"], -2, to).flatten(0, 2),
        "latents.out": pad_heads(weights["latents.out"], -1, to).flatten(1),
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
    read: Float[Tensor, "item frame latent_and_token channel"],
    present: Present,
    latents: int,
    projection: Float[Tensor, "width channel"],
    coarse: tuple[int, int],
    layout: tuple[int, int],
) -> Float[Tensor, "item height width_of_canvas width"]:
    """What the pairs say at each place, on average, for the cells of that place to add to themselves.

    Latents tell the rule; the field tells it where it happens, and its gradient reaches the pairs' tokens at once.
    """
    field = F.linear(mean_over_frames(read[:, :, latents:], present), projection).unflatten(1, coarse)
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
