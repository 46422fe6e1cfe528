"""The learning rate over the steps."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def rate_factor(step: Int[Tensor, ""], warmup: int, decay_from: int, max_steps: int) -> Float[Tensor, ""]:
    """What the learning rates are multiplied with at a step: up over the warm-up, flat, then linearly to zero.

    A tensor of a tensor, so that a recorded step computes its own rate.
    """
    position = step.to(torch.float32)
    up = ((position + 1.0) / max(warmup, 1)).clamp(max=1.0)
    down = ((max_steps - position) / max(max_steps - decay_from, 1)).clamp(0.0, 1.0)
    return up * down
