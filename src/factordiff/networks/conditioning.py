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

from factordiff.networks.parameters import Slot, Weights, convolution, linear

Frames = Int[Tensor, "item frame cell"]
Present = Bool[Tensor, "item frame"]


def one_hot(tokens: Int[Tensor, "*shape"], values: int, dtype: torch.dtype) -> Float[Tensor, "*shape value"]:
    """One-hot vectors; whatever is not a value (the mask, a cell outside the grid) is the zero vector."""
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


def grid_encoder_slots(
    name: str, channels: int, hidden: int, context: int, bias: bool = False
) -> dict[str, Slot]:
    """The weights of a grid encoder for one-hot grids of that many channels; `bias`: of its last layer too."""
    slots = {
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
    if bias:
        slots[f"{name}.out_bias"] = Slot((context,))
    return slots


def encode_grid(
    weights: Weights, name: str, grid: Float[Tensor, "batch channel height width"]
) -> Float[Tensor, "batch context"]:
    r"""$\mathrm{MLP}(\mathrm{Pool}(\mathrm{ConvNet}(grid)))$. Paper: Eq. (16)."""
    x = grid.contiguous(memory_format=torch.channels_last)
    x = F.silu(F.conv2d(x, weights[f"{name}.first"], weights[f"{name}.first_bias"], padding=1))
    x = F.silu(F.conv2d(x, weights[f"{name}.second"], weights[f"{name}.second_bias"], padding=1))
    pooled = x.mean((-2, -1))
    hidden = F.silu(F.linear(pooled, weights[f"{name}.up"], weights[f"{name}.up_bias"]))
    return F.linear(hidden, weights[f"{name}.out"], weights.get(f"{name}.out_bias"))


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


def paper_slots(values: int, hidden: int, context: int, bias: bool) -> dict[str, Slot]:
    """The weights of the paper's context embedding."""
    of_query = grid_encoder_slots("query", values, hidden, context, bias)
    return of_query | grid_encoder_slots("pair", 2 * values, hidden, context, bias)


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
