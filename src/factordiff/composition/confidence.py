r"""How sure an expert is: the top-2 margin $C = p^{(1)} - p^{(2)}$, at any sharpness.

Margins of confident networks round to 1: logit gaps of 20 and 24 give the same float32 margin, and ties would
then send every cell to the first expert. So everything here works with the *log-doubt*

$\log(1 - C) = \log(2 p^{(2)} + p^{(3)} + \dots)$,

which falls as the margin rises and never saturates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.types import Cells, ExpertLogProbs

Aggregate = Literal["mean", "min", "sum-log"]
AGGREGATES = ("mean", "min", "sum-log")
SMALLEST_MARGIN = 1e-12  # keeps the logarithm of a zero margin finite

Doubts = Float[Tensor, "*expert batch cell"]

# Another function of the same meaning, which may round the last bit; None where it cannot be used.
Faster = Callable[[Float[Tensor, "*expert batch cell value"]], Doubts | None]
_faster: ContextVar[Faster | None] = ContextVar("faster", default=None)


@contextmanager
def computed_by(faster: Faster) -> Iterator[None]:
    """Inside, log-doubts are worked out by this function wherever it can be used."""
    before = _faster.set(faster)
    try:
        yield
    finally:
        _faster.reset(before)


def log_doubt(log_probs: Float[Tensor, "*expert batch cell value"]) -> Doubts:
    r"""$\log(1 - (p^{(1)} - p^{(2)}))$ in float64: 0 for a tie at the top, $-\infty$ for a point mass."""
    faster = _faster.get()
    found = None if faster is None else faster(log_probs)
    if found is not None:
        return found
    # Sorted, so that the same probabilities in another order give the same bits: such experts tie.
    log_p = log_probs.sort(dim=-1, descending=True).values.double()
    if log_p.shape[-1] == 1:
        return torch.full_like(log_p[..., 0], -torch.inf)
    # The winner's place is taken by a second copy of the runner-up: 2 p2 + p3 + ...
    doubted = torch.cat([log_p[..., 1:2], log_p[..., 1:]], dim=-1)
    return doubted.logsumexp(-1) - log_p.logsumexp(-1)


def margin(log_probs: Float[Tensor, "*expert batch cell value"]) -> Doubts:
    r"""$C = p^{(1)} - p^{(2)}$ itself, for people to read. Compare log-doubts instead."""
    return -torch.expm1(log_doubt(log_probs))


def temper(log_probs: ExpertLogProbs, temperatures: Float[Tensor, " expert"]) -> ExpertLogProbs:
    r"""$\tilde p_m = \mathrm{softmax}(\log p_m / T_m)$: sharper for $T_m < 1$. Paper: Table "routing temperatures"."""
    return torch.log_softmax(log_probs.double() / temperatures.double()[:, None, None, None], dim=-1)


def aggregate_log_doubt(
    doubt: Float[Tensor, "expert batch cell"],
    labels: Int[Tensor, "batch cell"],
    masked: Cells,
    how: Aggregate = "mean",
) -> Float[Tensor, "expert batch cell"]:
    r"""Each factor's log-doubt, from its masked members, written at every cell of the factor.

    `mean`: of the margins, so that size does not matter. `min`: the most doubtful cell speaks for all.
    `sum-log`: $\sum\log C$, as if margins were independent probabilities; returned as its negative.
    Factors without a masked cell get 0 (no confidence); nothing asks about them.
    """
    index = labels.expand_as(doubt)
    hidden = masked.expand_as(doubt)
    empty = torch.zeros_like(doubt)
    if how == "min":
        worst = torch.full_like(doubt, -torch.inf).scatter_reduce(
            -1, index, doubt.where(hidden, -torch.inf), "amax"
        )
        has_member = empty.scatter_add(-1, index, hidden.double()) > 0
        return torch.where(has_member, worst, 0.0).gather(-1, index)
    if how == "mean":
        count = empty.scatter_add(-1, index, hidden.double())
        # log-mean-exp with the factor's own largest doubt taken out first
        top = torch.full_like(doubt, -torch.inf).scatter_reduce(
            -1, index, doubt.where(hidden, -torch.inf), "amax"
        )
        shift = top.clamp(min=-1e300)
        parts = torch.where(hidden, (doubt - shift.gather(-1, index)).exp(), 0.0)
        mean = empty.scatter_add(-1, index, parts).log() + shift - count.clamp(min=1.0).log()
        return torch.where(count > 0, mean, 0.0).gather(-1, index)
    if how == "sum-log":
        # log(C + small) - log(1 + small), which keeps apart what 1 - C rounds to 1
        log_margin = torch.log1p(-doubt.exp() / (1.0 + SMALLEST_MARGIN))
        return -empty.scatter_add(-1, index, torch.where(hidden, log_margin, 0.0)).gather(-1, index)
    raise InvalidInput(f"aggregate: expected one of {', '.join(AGGREGATES)}, got {how!r}")
