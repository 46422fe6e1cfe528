"""The forward process q(x_t | x_0) and its exact reversal: pure functions of their uniforms."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.diffusion import schedule
from factordiff.streams import Purpose, uniform
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

SMALLEST_TIME = 1e-3


def low_discrepancy_times(
    offset: Float[Tensor, ""], index: Int[Tensor, " batch"], batch: int
) -> Float[Tensor, " batch"]:
    r"""Times in $(\epsilon, 1]$ spread evenly over the batch, one in each of `batch` equal strata.

    One uniform offset is shared, $t_i = 1-(1-\epsilon)\,((u + i/B) \bmod 1)$, so each $t_i$ is uniform while
    the batch as a whole varies little. `index` may be any part of `0 .. batch-1` (a rank's share).
    """
    # Not divided by the batch: a GPU divides by a number another way than a CPU, in the last digit.
    position = (offset + index.to(offset.dtype) * (1.0 / batch)) % 1.0
    return 1.0 - (1.0 - SMALLEST_TIME) * position


def corrupt(
    x_0: Tokens, t: Float[Tensor, " batch"], uniforms: Float[Tensor, "batch cell"], vocabulary: Vocabulary
) -> Tokens:
    r"""Draw $x_t$ from $q(x_t \mid x_0)$: each cell is hidden with probability $t$, independently."""
    hidden = uniforms < (1.0 - schedule.alpha(t)).unsqueeze(-1)
    return torch.where(hidden, vocabulary.mask, x_0)


def noise(
    seed: int | Tensor, step: int | Tensor, index: Int[Tensor, " batch"], batch: int, cells: int
) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch cell"]]:
    """The times and uniforms of a training batch: a function of (seed, step, index) alone."""
    device = index.device
    step = torch.as_tensor(step, device=device)
    t = low_discrepancy_times(uniform(seed, Purpose.TIME, step), index, batch)
    cell = torch.arange(cells, device=device)
    return t, uniform(seed, Purpose.CORRUPT, step, index[:, None], cell[None, :])


def reverse_posterior(
    log_probs: CellLogProbs, x_t: Tokens, t: Float[Tensor, " batch"], s: Float[Tensor, " batch"]
) -> Float[Tensor, "batch cell value_and_mask"]:
    r"""Probabilities of $x_s$ given $x_t$ for s < t, the mask last.

    A masked cell stays masked with probability $(1-\alpha_s)/(1-\alpha_t)$ and else becomes a draw from the
    denoiser; a revealed cell never changes.

    Paper: Eq. (1), (9).
    """
    mask = log_probs.shape[-1]
    reveal = schedule.reveal_probability(t, s)[:, None, None]
    hidden = torch.cat([reveal * log_probs.exp(), (1.0 - reveal).expand(*log_probs.shape[:-1], 1)], dim=-1)
    kept = torch.nn.functional.one_hot(x_t, mask + 1).to(hidden.dtype)
    return torch.where((x_t == mask).unsqueeze(-1), hidden, kept)
