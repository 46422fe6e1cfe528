"""Weighted particles: target, effective size, systematic resampling, selection. Functions of their uniforms."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.sampling.draws import categorical

LogWeights = Float[Tensor, "item particle"]
RESAMPLING = 0.5  # the share of effective particles below which they are resampled


def log_target(
    log_density: Float[Tensor, "expert *rows"], beta: Float[Tensor, " expert"]
) -> Float[Tensor, "*rows"]:
    r"""$\sum_m \beta_m \ell_m$, where $0 \cdot \log 0 = 0$."""
    beta = beta.view(-1, *[1] * (log_density.dim() - 1))
    return torch.where(beta == 0, 0.0, beta * log_density).sum(0)


def normalised(log_w: LogWeights) -> LogWeights:
    """Weights that sum to one; where every particle is dead, equal ones."""
    alive = (log_w > -torch.inf).any(-1, keepdim=True)
    return torch.softmax(torch.where(alive, log_w, 0.0), dim=-1)


def effective_size(log_w: LogWeights) -> Float[Tensor, " item"]:
    r"""$ESS = 1 / \sum_k W_k^2$: how many equally weighted particles these are worth."""
    return 1.0 / normalised(log_w).square().sum(-1)


def systematic(weights: LogWeights, offset: Float[Tensor, " item"]) -> Int[Tensor, "item particle"]:
    """Ancestors by systematic resampling: positions (k + u) / P on the cumulative weights.

    A particle of weight W gets P·W copies, rounded up or down; equal weights give the identity.
    """
    count = weights.shape[-1]
    positions = (torch.arange(count, device=weights.device, dtype=weights.dtype) + offset[:, None]) / count
    cumulative = weights.cumsum(-1)
    # It ends at exactly one, and no position reaches it: nobody falls off the end or onto a dead last particle.
    cumulative = cumulative / cumulative[..., -1:]
    return torch.searchsorted(cumulative, positions.clamp(max=1.0 - 2.0**-53), right=True)


def draw_one(log_w: LogWeights, uniforms: Float[Tensor, " item"]) -> Int[Tensor, " item"]:
    """One particle per item, drawn by weight: a faithful sample of the corrected law."""
    return categorical(normalised(log_w).log(), uniforms)


def highest_target(
    log_density: Float[Tensor, "expert item particle"], beta: Float[Tensor, " expert"]
) -> Int[Tensor, " item"]:
    r"""The particle of highest $\sum_m \beta_m \ell_m$. Mode-seeking; log-weights are useless after resampling."""
    return log_target(log_density, beta).argmax(-1)
