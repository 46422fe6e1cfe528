"""How good an expert is on the validation set, measured the same way each time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.mixture import Mixture
from factordiff.diffusion.objectives import BACKGROUND, diffusion_loss, objective
from factordiff.diffusion.process import corrupt, noise
from factordiff.experts.condition import Condition
from factordiff.experts.refinement import Network
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.types import CellLogProbs, Tokens

ROWS = 600  # of one pass
DECODING_STEPS = 20


def _chunks(condition: Condition, x_0: Tokens) -> Iterator[tuple[Condition, Tokens, slice]]:
    for start in range(0, len(condition), ROWS):
        rows = slice(start, min(start + ROWS, len(condition)))
        yield condition[rows], x_0[rows], rows


@torch.no_grad()
def validation_loss(network: Network, condition: Condition, x_0: Tokens, objective_name: str) -> float:
    """The diffusion loss with times and noise that are the same at every check."""
    t, uniforms = noise(0, 0, torch.arange(len(condition)), len(condition), x_0.shape[-1])
    t, uniforms = t.float().to(x_0.device), uniforms.float().to(x_0.device)
    total = 0.0
    for part, clean, rows in _chunks(condition, x_0):
        x_t = corrupt(clean, t[rows], uniforms[rows], network.vocabulary)
        log_probs = torch.log_softmax(network.logits(network.weights(), x_t, network.encode(part)), -1)
        loss = diffusion_loss(objective(objective_name), log_probs, clean, x_t, t[rows])
        total += float(loss) * clean.numel()
    return total / x_0.numel()


@torch.no_grad()
def one_shot(network: Network, condition: Condition, x_0: Tokens) -> dict[str, float]:
    """Everything that one pass from the all-masked canvas tells.

    `pixel` and `exact` take the most probable value of each cell; `occupancy` asks only background or not;
    `given_foreground` is the share of right values among foreground cells, and `largest_share_at_foreground` the
    mean of the largest share that one value has of the foreground's probability (1/9 when it is undecided).
    """
    sums: dict[str, Tensor] = {}
    for part, clean, _ in _chunks(condition, x_0):
        masked = torch.full_like(clean, network.vocabulary.mask)
        log_probs = network.log_probs(masked, network.encode(part))
        for name, value in _sums(log_probs, clean).items():
            sums[name] = sums.get(name, torch.zeros_like(value)) + value
    cells, foreground = sums["cells"], sums["foreground"].clamp(min=1.0)
    return {
        "pixel": float(sums["right"] / cells),
        "exact": float(sums["exact"] / len(condition)),
        "occupancy": float(sums["occupied"] / cells),
        "given_foreground": float(sums["right_foreground"] / foreground),
        "largest_share_at_foreground": float(sums["largest_share"] / foreground),
    }


@torch.no_grad()
def decoded(network: Network, condition: Condition, x_0: Tokens) -> dict[str, float]:
    """Accuracy of drawing in twenty steps, surest cells first: nearer to how an expert is used than one pass."""
    right = exact = 0
    for part, clean, _ in _chunks(condition, x_0):
        masked = torch.full_like(clean, network.vocabulary.mask)
        drawn = sample([network], Mixture(), masked, part, reveal=ByConfidence(steps=DECODING_STEPS)).x_0
        right += int((drawn == clean).sum())
        exact += int((drawn == clean).all(-1).sum())
    return {"decoded_pixel": right / x_0.numel(), "decoded_exact": exact / len(x_0)}


def _sums(log_probs: CellLogProbs, x_0: Tokens) -> dict[str, Float[Tensor, ""]]:
    right = log_probs.argmax(-1) == x_0
    foreground = x_0 > BACKGROUND
    log_foreground = log_probs[..., BACKGROUND + 1 :].logsumexp(-1)
    largest = (log_probs[..., BACKGROUND + 1 :].amax(-1) - log_foreground).exp()
    occupied = (log_foreground > log_probs[..., BACKGROUND]) == foreground
    counts = {
        "cells": torch.ones_like(right),
        "right": right,
        "exact": right.all(-1),
        "occupied": occupied,
        "foreground": foreground,
        "right_foreground": right & foreground,
        "largest_share": torch.where(foreground, largest, 0.0),
    }
    return {name: count.float().sum().cpu().double() for name, count in counts.items()}
