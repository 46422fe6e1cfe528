"""Demonstrations of one item should say the same, and something else than those of other items."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from factordiff.training.machines import rows_of

SHARPNESS = 10.0


def agreement_loss(
    codes: Float[Tensor, "item frame context"], present: Bool[Tensor, "item frame"], batch: int
) -> Float[Tensor, ""]:
    r"""InfoNCE between an item's first two demonstrations, each read alone, over the whole global batch.

    $-\log \frac{\exp(s\,a_i \cdot b_i)}{\sum_j \exp(s\,a_i \cdot b_j)}$ with unit vectors a and b, and the same with
    a and b exchanged, summed over the rows here and divided by `batch`, the global one. The sum over j reaches the
    rows of every machine, so the machines' losses add up to the loss of one machine that has all rows.

    What a demonstration says is then what distinguishes its rule, and under which symmetry it is shown, from all
    others: reading it is learned at once instead of from the few cells that depend on it. No label is used; items of
    the same rule are each other's false negatives, which costs little among a hundred rules. Items with one
    demonstration take no part.
    """
    if codes.shape[1] < 2:
        return codes.sum() * 0.0
    pairs = F.normalize(codes[:, :2].float(), dim=-1)
    takes_part = present[:, 1]
    all_pairs, all_parts, first = _of_all_machines(pairs, takes_part, batch)
    own = torch.arange(len(pairs), device=pairs.device) + first
    total = torch.zeros((), device=pairs.device)
    for side in (0, 1):
        # Rows that take no part keep finite scores: their loss is dropped, and so must its gradient be.
        absent = takes_part[:, None] & ~all_parts[None, :]
        scores = SHARPNESS * pairs[:, side] @ all_pairs[:, 1 - side].T
        scores = scores.masked_fill(absent, -torch.inf)
        losses = scores.logsumexp(1) - scores.gather(1, own[:, None]).squeeze(1)
        total = total + torch.where(takes_part, losses, 0.0).sum() / 2
    return total / batch


@torch.compiler.disable
def _of_all_machines(pairs: Tensor, takes_part: Tensor, batch: int) -> tuple[Tensor, Tensor, int]:
    """The same rows of the whole global batch, in its order, and where this machine's begin."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return pairs, takes_part, 0
    first = rows_of(batch, dist.get_rank(), dist.get_world_size()).start
    all_pairs = _Gather.apply(pairs, first, batch)
    all_parts = _Gather.apply(takes_part.to(torch.float32), first, batch) > 0.5
    return all_pairs, all_parts, first


class _Gather(torch.autograd.Function):
    """Every machine's rows in one tensor; a row's gradient is the sum over the machines that used it.

    A sum of tensors that are zero outside each machine's own rows: machines may have different numbers of them.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, first: int, batch: int) -> Tensor:
        ctx.own = slice(first, first + len(rows))
        everything = rows.new_zeros(batch, *rows.shape[1:])
        everything[ctx.own] = rows
        dist.all_reduce(everything)
        return everything

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total[ctx.own], None, None
