"""What the cells of an item are told, from its query and its demonstrations: where both backbones begin."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.experts.conditioning import (
    Frames,
    Present,
    demonstration_channels,
    encode_query,
    mean_over_frames,
    one_hot,
)
from factordiff.experts.config import NetworkConfig
from factordiff.experts.latents import average_field, average_latents, latent_context
from factordiff.experts.parameters import Weights


class Told(NamedTuple):
    """An item's one-hot channels and context vector; its latents, and what its demonstrations say place by place."""

    channels: Float[Tensor, "item cell channel"]
    context: Float[Tensor, "item context"]
    latents: Float[Tensor, "item latent channel"] | None
    field: Float[Tensor, "item height width_of_canvas width"] | None


def tell(
    config: NetworkConfig,
    weights: Weights,
    query: Int[Tensor, "item cell"],
    inputs: Frames,
    outputs: Frames,
    present: Present,
    read: Float[Tensor, "item frame ..."],
) -> Told:
    """Put together what is known about an item before its first pass. Paper: appendix "Context Conditioning"."""
    dtype = weights["query.first"].dtype
    channels = one_hot(query, config.values, dtype)
    context = encode_query(weights, query, config.values, config.layout)
    if config.conditioning == "paper":
        shown = demonstration_channels(inputs, outputs, present, config.slots, config.values, dtype)
        return Told(torch.cat([channels, shown], -1), context + mean_over_frames(read, present), None, None)
    latents = average_latents(read[:, :, : config.latents], present)
    field = None
    if config.field:
        places = read[:, :, config.latents :]
        field = average_field(places, present, weights["latents.field"], config.pair_layout, config.layout)
    return Told(channels, context + latent_context(weights, latents), latents, field)
