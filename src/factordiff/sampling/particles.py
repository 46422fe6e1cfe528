"""Weighted particles: target, effective size, systematic resampling, selection. Functions of their uniforms."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.state import SamplerState
from factordiff.streams import Purpose, categorical

LogWeights = Float[Tensor, "item particle"]
ROUNDING = 1e-9  # by which the effective size of equal weights may seem smaller than their number
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


def resampled(
    state: SamplerState, share: float
) -> tuple[SamplerState, Float[Tensor, " item"], Int[Tensor, "item particle"]]:
    """Systematic resampling of the items whose effective size fell below this share of their particles.

    Also the effective sizes before it, and who each particle comes from.
    """
    count = state.particles
    log_w = state.log_w.view(-1, count)
    size = effective_size(log_w)
    poor = (size < share * count * (1 - ROUNDING))[:, None]
    first = slice(None, None, count)  # an item's first particle draws for it
    offset = state.draws[first].rows(Purpose.RESAMPLE, state.clock[first])
    kept = torch.arange(count, device=log_w.device).expand_as(log_w)
    ancestors = torch.where(poor, systematic(normalised(log_w), offset), kept)
    rows = (torch.arange(len(log_w), device=log_w.device)[:, None] * count + ancestors).flatten()
    after = replace(
        state,
        x_t=state.x_t[rows],
        log_density=state.log_density[:, rows],
        log_w=torch.where(poor, 0.0, log_w).flatten(),
    )
    return after, size, ancestors
