"""Demonstrations of one item should say the same, and something else than those of other items."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.distributed.nn.functional import all_gather

SHARPNESS = 10.0


def agreement_loss(
    codes: Float[Tensor, "item frame context"], present: Bool[Tensor, "item frame"], batch: int
) -> Float[Tensor, ""]:
    r"""InfoNCE between an item's first two demonstrations, each read alone, over the whole batch.

    $-\log \frac{\exp(s\,a_i \cdot b_i)}{\sum_j \exp(s\,a_i \cdot b_j)}$ with unit vectors a and b, and the same with
    a and b exchanged, summed over the rows here and divided by `batch`. What a demonstration says is then what
    distinguishes its rule, and under which symmetry it is shown, from all others: reading it is learned at once
    instead of from the few cells that depend on it. No label is used; items of the same rule are each
    other's false negatives, which costs little among a hundred rules. Items with one demonstration take no part.
    """
    if codes.shape[1] < 2:
        return codes.sum() * 0.0
    one, two = F.normalize(codes[:, :2].float(), dim=-1).unbind(1)
    takes_part = present[:, 1]
    all_one, all_two, all_parts, first = _from_all_machines(one, two, takes_part)
    own = torch.arange(len(one), device=one.device) + first
    total = torch.zeros((), device=one.device)
    for anchors, others in ((one, all_two), (two, all_one)):
        # Rows that take no part keep finite scores: their loss is dropped, and so must its gradient be.
        absent = takes_part[:, None] & ~all_parts[None, :]
        scores = (SHARPNESS * anchors @ others.T).masked_fill(absent, -torch.inf)
        losses = scores.logsumexp(1) - scores.gather(1, own[:, None]).squeeze(1)
        total = total + torch.where(takes_part, losses, 0.0).sum() / 2
    return total / batch


def _from_all_machines(one: Tensor, two: Tensor, takes_part: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """Every machine's rows (gradients flow back to their owners), and where this machine's begin."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return one, two, takes_part, 0
    counts = [torch.zeros((), dtype=torch.int64, device=one.device) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor(len(one), device=one.device))
    most = max(int(count) for count in counts)
    padding = most - len(one)
    padded = [F.pad(part, (0, 0, 0, padding)) for part in (one, two)]
    parts = [torch.zeros(most, dtype=torch.bool, device=one.device) for _ in counts]
    dist.all_gather(parts, F.pad(takes_part, (0, padding)))
    all_one, all_two = (torch.cat(list(all_gather(part))) for part in padded)
    return all_one, all_two, torch.cat(parts), dist.get_rank() * most
