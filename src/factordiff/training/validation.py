"""How good an expert is on the validation set, measured the same way each time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.mixture import Mixture
from factordiff.diffusion.objectives import BACKGROUND, diffusion_loss, objective
from factordiff.diffusion.process import corrupt, noise
from factordiff.networks.network import Network
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.streams import Purpose, uniform
from factordiff.types import CellLogProbs, Tokens

CELLS = 60_000  # of one pass
HIDDEN = (0.15, 0.5)  # shares of the cells that an expert without a condition is to fill in
DECODING_STEPS = 20


def _chunks(condition: Any, x_0: Tokens) -> Iterator[tuple[Any, Tokens, slice]]:
    at_once = max(1, CELLS // x_0.shape[1])
    for start in range(0, len(x_0), at_once):
        rows = slice(start, min(start + at_once, len(x_0)))
        yield None if condition is None else condition[rows], x_0[rows], rows


@torch.no_grad()
def validation_loss(network: Network, condition: Any, x_0: Tokens, objective_name: str) -> float:
    """The diffusion loss with times and noise that are the same at every check."""
    t, uniforms = noise(0, 0, torch.arange(len(x_0)), len(x_0), x_0.shape[-1])
    t, uniforms = t.float().to(x_0.device), uniforms.float().to(x_0.device)
    total = 0.0
    for part, clean, rows in _chunks(condition, x_0):
        x_t = corrupt(clean, t[rows], uniforms[rows], network.vocabulary)
        log_probs = torch.log_softmax(network.logits(network.weights(), x_t, network.encode(part)), -1)
        loss = diffusion_loss(objective(objective_name), log_probs, clean, x_t, t[rows])
        total += float(loss) * clean.numel()
    return total / x_0.numel()


@torch.no_grad()
def one_shot(network: Network, condition: Any, x_0: Tokens) -> dict[str, float]:
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
        "exact": float(sums["exact"] / len(x_0)),
        "occupancy": float(sums["occupied"] / cells),
        "given_foreground": float(sums["right_foreground"] / foreground),
        "largest_share_at_foreground": float(sums["largest_share"] / foreground),
    }


@torch.no_grad()
def decoded(network: Network, condition: Any, x_0: Tokens) -> dict[str, float]:
    """Accuracy of drawing in twenty steps, surest cells first: nearer to how an expert is used than one pass."""
    right = exact = 0
    for part, clean, _ in _chunks(condition, x_0):
        masked = torch.full_like(clean, network.vocabulary.mask)
        drawn = sample([network], Mixture(), masked, part, reveal=ByConfidence(steps=DECODING_STEPS)).x_0
        right += int((drawn == clean).sum())
        exact += int((drawn == clean).all(-1).sum())
    return {"decoded_pixel": right / x_0.numel(), "decoded_exact": exact / len(x_0)}


@torch.no_grad()
def filled_in(network: Network, x_0: Tokens) -> dict[str, float]:
    """Bits per hidden cell and the share of hidden cells whose likeliest value is right, the same cells at every check.

    Where nothing is told there is no right answer to an empty canvas: some of the cells are given.
    """
    cell = torch.arange(x_0.shape[1])
    found: dict[str, float] = {}
    for share in HIDDEN:
        bits = right = count = 0.0
        for _, clean, rows in _chunks(None, x_0):
            items = torch.arange(rows.start, rows.stop)[:, None]
            hidden = (uniform(0, Purpose.CORRUPT, items, cell) < share).to(clean.device)
            x_t = torch.where(hidden, network.vocabulary.mask, clean)
            log_probs = network.log_probs(x_t, network.encode(None))[hidden]
            truth = clean[hidden]
            bits -= float(log_probs.gather(-1, truth[:, None]).double().sum()) / math.log(2)
            right += float((log_probs.argmax(-1) == truth).sum())
            count += len(truth)
        name = f"at_{round(100 * share)}"
        found |= {f"bits_{name}": bits / max(count, 1.0), f"right_{name}": right / max(count, 1.0)}
    return found


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
