r"""The three training objectives: pure functions of (log_probs, x_0, x_t, t).

Each is $\mathbb{E}[w_t \sum_{i\text{ masked}} \ell_i]$ divided by the constant batch x cells. Dividing by the
number of masked (or foreground) cells instead would silently re-weight the samples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.diffusion.schedule import loss_weight
from factordiff.errors import Unavailable
from factordiff.types import CellLogProbs, Tokens

BACKGROUND = 0

CellLoss = Callable[[CellLogProbs, Tokens], Float[Tensor, "batch cell"]]


def full(log_probs: CellLogProbs, x_0: Tokens) -> Float[Tensor, "batch cell"]:
    r"""Cross-entropy over all values: $-\log p(x_0)$. Paper: Eq. (28)."""
    return -log_probs.gather(-1, x_0.unsqueeze(-1)).squeeze(-1)


def occupancy(log_probs: CellLogProbs, x_0: Tokens) -> Float[Tensor, "batch cell"]:
    r"""Binary cross-entropy of background against foreground, $p_{fg}=\sum_{c\ge1}p(c)$.

    How $p_{fg}$ is split over the colours receives no target. Paper: Eq. (29)-(31).
    """
    log_bg = log_probs[..., BACKGROUND]
    log_fg = log_probs[..., BACKGROUND + 1 :].logsumexp(-1)
    return -torch.where(x_0 > BACKGROUND, log_fg, log_bg)


def color(log_probs: CellLogProbs, x_0: Tokens) -> Float[Tensor, "batch cell"]:
    r"""Cross-entropy over all values, counted at foreground targets only.

    Background is only ever pushed down, so a trained expert gives it next to nothing. Paper: Eq. (32).
    """
    return torch.where(x_0 > BACKGROUND, full(log_probs, x_0), 0.0)


OBJECTIVES: dict[str, CellLoss] = {"full": full, "occupancy": occupancy, "color": color}


def objective(name: str) -> CellLoss:
    """The objective of that name."""
    if name not in OBJECTIVES:
        raise Unavailable(f"objective: expected one of {', '.join(OBJECTIVES)}, got {name!r}")
    return OBJECTIVES[name]


def diffusion_loss(
    cell_loss: CellLoss, log_probs: CellLogProbs, x_0: Tokens, x_t: Tokens, t: Float[Tensor, " batch"]
) -> Float[Tensor, ""]:
    r"""The loss of a batch: $\frac{1}{BN}\sum_b w_{t_b}\sum_{i\text{ masked}}\ell_{b,i}$.

    Paper: Eq. (13) with the appendix's weight.
    """
    mask = log_probs.shape[-1]
    per_cell = torch.where(x_t == mask, cell_loss(log_probs, x_0), 0.0)
    return (loss_weight(t).to(per_cell.dtype).unsqueeze(-1) * per_cell).sum() / x_0.numel()
