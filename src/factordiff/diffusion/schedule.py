r"""The log-linear schedule: $\alpha_t = 1-t$, $\sigma_t = -\log\alpha_t$; t=0 is clean, t=1 all masked."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Time = Float[Tensor, "..."]


def alpha(t: Time) -> Time:
    r"""The probability $\alpha_t = 1-t$ that a cell is still visible at time t."""
    return 1.0 - t


def sigma(t: Time) -> Time:
    r"""The noise level $\sigma_t = -\log\alpha_t$."""
    return -torch.log1p(-t)


def loss_weight(t: Time) -> Time:
    r"""The weight of a time in the NELBO: $w_t = \sigma'_t / (e^{\sigma_t}-1) = 1/t$.

    The paper's main text (Eq. 13) divides $\sigma'_t$ by $1-\alpha_t$ instead, which lacks a factor
    $\alpha_t$: with it the expectation diverges as t approaches 1. The appendix's formula is used here.

    Paper: appendix "Loss Variants".
    """
    return 1.0 / t


def reveal_probability(t: Time, s: Time) -> Time:
    r"""The chance that a masked cell is revealed between t and s < t: $(\alpha_s-\alpha_t)/(1-\alpha_t)$."""
    return (alpha(s) - alpha(t)) / (1.0 - alpha(t))
