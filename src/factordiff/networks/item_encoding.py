"""What the cells of an item are told, from its query and its demonstrations: where both backbones begin."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.networks.conditioning import (
    Frames,
    Present,
    demonstration_channels,
    encode_query,
    mean_over_frames,
    one_hot,
)
from factordiff.networks.config import RefinementConfig
from factordiff.networks.latents import average_field, average_latents, latent_context
from factordiff.networks.parameters import Slot, Weights, linear


class ItemEncoding(NamedTuple):
    """An item's one-hot channels and context vector; its latents, and what its demonstrations say place by place."""

    channels: Float[Tensor, "item cell channel"]
    context: Float[Tensor, "item context"]
    latents: Float[Tensor, "item latent channel"] | None
    field: Float[Tensor, "item height width_of_canvas width"] | None


def encode_item(
    config: RefinementConfig,
    weights: Weights,
    query: Int[Tensor, "item cell"],
    inputs: Frames,
    outputs: Frames,
    present: Present,
    read: Float[Tensor, "item frame ..."],
) -> ItemEncoding:
    """Put together what is known about an item before its first pass. Paper: appendix "Context Conditioning"."""
    dtype = weights["query.first"].dtype
    channels = one_hot(query, config.values, dtype)
    context = encode_query(weights, query, config.values, config.layout)
    if config.conditioning == "paper":
        shown = demonstration_channels(inputs, outputs, present, config.slots, config.values, dtype)
        return ItemEncoding(
            torch.cat([channels, shown], -1), context + mean_over_frames(read, present), None, None
        )
    latents = average_latents(read[:, :, : config.latents], present)
    field = None
    if config.field:
        places = read[:, :, config.latents :]
        field = average_field(places, present, weights["latents.field"], config.pair_layout, config.layout)
    return ItemEncoding(channels, context + latent_context(weights, latents), latents, field)


def modulations(
    weights: Weights, blocks: list[str], context: Float[Tensor, "item context"]
) -> Float[Tensor, "item block parts channel"]:
    r"""What the context vector does to each block: $\mathrm{MLP}(c)$, in as many parts as its matrix has.

    Ours is a linear map of $\mathrm{SiLU}(c)$, as adaLN-Zero is usually written; the paper's literal one has a layer
    before that. Paper: Eq. (17), (24).
    """
    each = []
    for name in blocks:
        hidden, matrix = context, weights[f"{name}.modulation"]
        if f"{name}.modulation_in" in weights:
            hidden = F.linear(hidden, weights[f"{name}.modulation_in"], weights[f"{name}.modulation_in_bias"])
        parts = F.linear(F.silu(hidden), matrix.flatten(0, 1)).unflatten(-1, tuple(matrix.shape[:2]))
        each.append(parts + weights[f"{name}.modulation_bias"])
    return torch.stack(each, 1)


def modulation_slots(name: str, context: int) -> dict[str, Slot]:
    """The first layer of a block's literal MLP, as wide as the context vector."""
    return {f"{name}.modulation_in": linear(context, context), f"{name}.modulation_in_bias": Slot((context,))}
