"""The log-doubt as one Triton kernel: what `confidence.log_doubt` says in many, the sorting left out.

Sorting there gives the same bits to the same probabilities in another order. Here their sum does, since it is exact:
each is a share of the runner-up's, at most 1, and whole numbers of 2^-55 add up without rounding.
Usable where Triton and a GPU are, importable everywhere.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.kernels import jit, tl, triton

MOST_VALUES = 128  # whose sum of shares stays below 2^63
ROWS = 64  # cells of a program


@jit
def _log_doubt(log_probs, out, cells, values: tl.constexpr, VALUES: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    value = tl.arange(0, VALUES)
    there = (row[:, None] < cells) & (value[None, :] < values)
    log_p = tl.load(log_probs + row[:, None] * values + value[None, :], mask=there, other=-float("inf"))
    log_p = log_p.to(tl.float64)
    first = tl.max(log_p, 1)
    winner = tl.min(tl.where(log_p == first[:, None], value[None, :], VALUES), 1)
    others = tl.where(value[None, :] == winner[:, None], -float("inf"), log_p)
    second = tl.max(others, 1)
    certain = second == -float("inf")
    share = tl.exp(others - tl.where(certain, 0.0, second)[:, None])
    rest = tl.sum((share * 36028797018963968.0).to(tl.int64), 1).to(tl.float64) / 36028797018963968.0
    # (2 p2 + p3 + ...) / (p1 + p2 + p3 + ...)
    doubt = second + tl.log(1.0 + rest) - first - tl.log(1.0 + tl.exp(second - first) * rest)
    doubt = tl.where(certain, -float("inf"), doubt)
    broken = (tl.max((log_p != log_p).to(tl.int32), 1) > 0) | (first == -float("inf"))
    tl.store(out + row, tl.where(broken, float("nan"), doubt), mask=row < cells)


def log_doubt(
    log_probs: Float[Tensor, "*expert batch cell value"],
) -> Float[Tensor, "*expert batch cell"] | None:
    r"""$\log(1 - (p^{(1)} - p^{(2)}))$ in float64, where the kernel can be used."""
    return in_kernel(log_probs) if possible(log_probs) else None


def in_kernel(log_probs: Float[Tensor, "*expert batch cell value"]) -> Float[Tensor, "*expert batch cell"]:
    """The same, always by the kernel."""
    log_probs = log_probs.contiguous()
    values = log_probs.shape[-1]
    out = torch.empty(log_probs.shape[:-1], dtype=torch.float64, device=log_probs.device)
    programs = triton.cdiv(out.numel(), ROWS)
    if programs:
        _log_doubt[(programs,)](
            log_probs, out, out.numel(), values, VALUES=triton.next_power_of_2(values), ROWS=ROWS
        )
    return out


def possible(log_probs: Tensor) -> bool:
    """Whether it can be used for these."""
    return bool(triton) and log_probs.is_cuda and 1 < log_probs.shape[-1] <= MOST_VALUES
