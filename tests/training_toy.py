"""A few seconds of training: what the occupancy loss does to the split of the foreground."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from factordiff.diffusion.objectives import diffusion_loss, occupancy


@dataclass(frozen=True)
class Trained:
    accuracy: float  # background against foreground
    largest_share: float  # median over foreground cells of the largest color's share of the foreground


def occupancy_after_training(zero_head: bool, steps: int = 300, colors: int = 9) -> Trained:
    """A small network on synthetic cells: 16 features decide foreground (a third of the cells) and color."""
    source = torch.Generator().manual_seed(0)
    features = torch.randn(2048, 1, 16, generator=source)
    color = 1 + (features[..., :colors]).argmax(-1)
    x_0 = torch.where(features[..., -1] > 0.43, color, 0)
    x_t = torch.full_like(x_0, colors + 1)
    t = torch.ones(len(x_0))

    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, colors + 1))
    head = net[-1]
    if zero_head:
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = diffusion_loss(occupancy, torch.log_softmax(net(features), dim=-1), x_0, x_t, t)
        loss.backward()
        optimizer.step()
    p = torch.softmax(net(features).detach(), dim=-1)
    foreground = x_0 > 0
    share = p[..., 1:].amax(-1) / p[..., 1:].sum(-1)
    right = ((p[..., 0] < 0.5) == foreground).float().mean()
    return Trained(float(right), float(share[foreground].median()))
