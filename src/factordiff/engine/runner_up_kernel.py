"""The largest two of a large vocabulary, and the sum of the others beside the second, as one Triton kernel.

What `confidence._against_runner_up` finds in two dozen operations over all values. Shares are rounded to the same whole
numbers, so that their sum is exact and the order of the values changes no bit; the exponential's last bit may differ.
Usable where Triton and a GPU are, importable everywhere.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.confidence import RunnerUp, rounding_number
from factordiff.kernels import jit, tl, triton

BLOCK = 4096  # values that a program looks at together


@jit
def _against_runner_up(  # type: ignore[no-untyped-def]
    log_probs, firsts, seconds, others, large, lowest, values: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    next_best = tl.full((BLOCK,), -float("inf"), tl.float32)
    place = lane
    broken = tl.zeros((BLOCK,), tl.int32)
    for start in range(
        0, values, BLOCK
    ):  # of the values that a lane meets its largest two, and where the first was
        there = start + lane < values
        log_p = tl.load(log_probs + row * values + start + lane, mask=there, other=-float("inf"))
        broken = broken | (log_p != log_p).to(tl.int32)
        larger = log_p > best
        next_best = tl.where(larger, best, tl.maximum(next_best, log_p))
        place = tl.where(larger, start + lane, place)
        best = tl.where(larger, log_p, best)
    first = tl.max(best, 0)
    winner = tl.min(tl.where(best == first, place, values), 0)
    second = tl.max(tl.where(place == winner, next_best, best), 0)
    beside = tl.maximum(second, lowest)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, values, BLOCK):
        there = (start + lane < values) & (start + lane != winner)
        log_p = tl.load(log_probs + row * values + start + lane, mask=there, other=-float("inf"))
        share = tl.exp(log_p - beside)
        total += ((share + large) - large).to(tl.float64)
    bad = tl.max(broken, 0) > 0
    tl.store(firsts + row, tl.where(bad, float("nan"), first.to(tl.float64)))
    tl.store(seconds + row, second.to(tl.float64))
    tl.store(others + row, tl.sum(total, 0))


def against_runner_up(log_p: Float[Tensor, "row value"]) -> RunnerUp | None:
    """As the formula, where the kernel can be used."""
    return in_kernel(log_p) if possible(log_p) else None


def in_kernel(log_p: Float[Tensor, "row value"]) -> RunnerUp:
    """The same, always by the kernel."""
    log_p = log_p.contiguous()
    rows, values = log_p.shape
    first, second, others = torch.empty(3, rows, dtype=torch.float64, device=log_p.device)
    if rows:
        lowest = torch.finfo(log_p.dtype).min
        _against_runner_up[(rows,)](
            log_p, first, second, others, rounding_number(log_p), lowest, values, BLOCK=BLOCK, num_warps=8
        )
    return first, second, others


def possible(log_p: Tensor) -> bool:
    """Whether it can be used for these."""
    return bool(triton) and log_p.is_cuda and log_p.dtype == torch.float32
