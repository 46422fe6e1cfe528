r"""How sure an expert is: the top-2 margin $C = p^{(1)} - p^{(2)}$, at any sharpness.

Margins of confident networks round to 1: logit gaps of 20 and 24 give the same float32 margin, and ties would
then send every cell to the first expert. So everything here works with the *log-doubt*

$\log(1 - C) = \log(2 p^{(2)} + p^{(3)} + \dots)$,

which falls as the margin rises and never saturates.

Experts that give the same probabilities to other values tie, and a tie goes to the first: so the order of the values
must not change a bit of a log-doubt. Small vocabularies are sorted before they are added up. Large ones are not: there
each probability is a whole number of small steps, a share of the runner-up's, and such numbers add up exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.tensors import Numbers, as_tensor
from factordiff.types import LARGE, Cells, ExpertLogProbs

Aggregate = Literal["mean", "min", "sum-log"]
AGGREGATES = ("mean", "min", "sum-log")
SMALLEST_MARGIN = 1e-12  # keeps the logarithm of a zero margin finite
BLOCK = 128  # values among which the largest is found at once
AT_ONCE = {"cpu": 2**19, "cuda": 2**26}  # log-probabilities worked on together: a cache's worth

Doubts = Float[Tensor, "*expert batch cell"]


class TopTwo(NamedTuple):
    """The largest two log-probabilities of each row, and which value has the first."""

    first: Float[Tensor, " row"]
    second: Float[Tensor, " row"]
    winner: Int[Tensor, " row"]

    @classmethod
    def of(cls, log_p: Float[Tensor, "row value"]) -> TopTwo:
        """Of the blocks' largest, or inside the winner's block; the values of a row are more than a block."""
        rows, values = log_p.shape
        whole = log_p[:, : values // BLOCK * BLOCK].view(rows, values // BLOCK, BLOCK)
        largest = whole.amax(-1)
        if values % BLOCK:
            largest = torch.cat([largest, log_p[:, values // BLOCK * BLOCK :].amax(-1, keepdim=True)], 1)
        (first, other), block = (part.T for part in largest.topk(2))
        # A last block that is short is looked at with some values before it: those are others of the winner too.
        start = (block[0] * BLOCK).clamp(max=values - BLOCK)
        around = log_p.gather(1, start[:, None] + torch.arange(BLOCK, device=log_p.device))
        inside, at = around.topk(2)
        return cls(first, torch.maximum(other, inside[:, 1]), start + at[:, 0])

    def rows(self, rows: Int[Tensor, " some"]) -> TopTwo:
        """Those of some rows."""
        return TopTwo(*(part[rows] for part in self))


# The largest two log-probabilities of each row, and what the others have beside the second.
RunnerUp = tuple[Float[Tensor, " row"], Float[Tensor, " row"], Float[Tensor, " row"]]


@dataclass(frozen=True)
class Faster:
    """Functions of the same meaning, which may round the last bit; each says None where it cannot be used."""

    log_doubt: Callable[[Float[Tensor, "*expert batch cell value"]], Doubts | None]  # of small vocabularies
    against_runner_up: Callable[[Float[Tensor, "row value"]], RunnerUp | None]  # of large ones


_faster: ContextVar[Faster | None] = ContextVar("faster", default=None)


@contextmanager
def computed_by(faster: Faster) -> Iterator[None]:
    """Inside, log-doubts are worked out by these functions wherever they can be used."""
    before = _faster.set(faster)
    try:
        yield
    finally:
        _faster.reset(before)


def log_doubt(log_probs: Float[Tensor, "*expert batch cell value"] | Numbers) -> Doubts:
    r"""$\log(1 - (p^{(1)} - p^{(2)}))$ in float64: 0 for a tie at the top, $-\infty$ for a point mass."""
    if not isinstance(log_probs, Tensor):
        log_probs = _listed(log_probs)
    faster = _faster.get()
    found = None if faster is None else faster.log_doubt(log_probs)
    if found is not None:
        return found
    if log_probs.shape[-1] > LARGE:
        return _by_rows(log_doubt_of_many, log_probs)
    # Sorted, so that the same probabilities in another order give the same bits: such experts tie.
    log_p = log_probs.sort(dim=-1, descending=True).values.double()
    if log_p.shape[-1] == 1:
        return torch.full_like(log_p[..., 0], -torch.inf)
    # The winner's place is taken by a second copy of the runner-up: 2 p2 + p3 + ...
    doubted = torch.cat([log_p[..., 1:2], log_p[..., 1:]], dim=-1)
    return doubted.logsumexp(-1) - log_p.logsumexp(-1)


def _listed(given: Numbers) -> Float[Tensor, "*expert batch cell value"]:
    """What a person wrote down is looked at; tensors come from the sampler, which has seen to them."""
    log_probs = as_tensor("log_probs", given)
    if log_probs.dim() == 0 or log_probs.shape[-1] == 0 or log_probs.dtype == torch.bool:
        raise InvalidInput(
            "log_probs: expected log-probabilities with the values along the last axis, got "
            f"{log_probs.dtype} of shape {tuple(log_probs.shape)}"
        )
    if log_probs.isnan().any() or (log_probs == torch.inf).any():
        raise InvalidInput("log_probs: expected log-probabilities (finite or -inf), got NaN or +inf")
    return log_probs if log_probs.is_floating_point() else log_probs.double()


def error_probability(log_probs: Float[Tensor, "*expert batch cell value"]) -> Doubts:
    r"""$1 - p_i^{(1)}$ in float64, added up from the other values, so that it does not round to 0."""
    if log_probs.shape[-1] > LARGE:
        return _by_rows(_error_of_many, log_probs)
    best = log_probs.argmax(-1, keepdim=True)
    others = log_probs.double().exp().scatter(-1, best, 0.0)
    return others.sum(-1).clamp(max=1.0)


def entropy(log_probs: Float[Tensor, "*expert batch cell value"]) -> Doubts:
    r"""$H_i = -\sum_v p_i(v) \log p_i(v)$ in nats, in float64."""
    return torch.special.entr(log_probs.double().exp()).sum(-1)


def _by_rows(function: Callable[[Tensor], Tensor], log_probs: Tensor) -> Tensor:
    """A function of distributions, a cache's worth of them at a time."""
    rows = log_probs.reshape(-1, log_probs.shape[-1])
    parts = [function(part) for part in rows.split(rows_at_once(rows))]
    found = parts[0] if len(parts) == 1 else torch.cat(parts)
    return found.view(log_probs.shape[:-1])


def rows_at_once(rows: Float[Tensor, "row value"]) -> int:
    """How many of them are a cache's worth."""
    return max(1, AT_ONCE.get(rows.device.type, AT_ONCE["cuda"]) // rows.shape[-1])


def log_doubt_of_many(log_p: Float[Tensor, "row value"], top: TopTwo | None = None) -> Float[Tensor, " row"]:
    r"""The log-doubt from the top two and one sum: $p^{(2)} (1 + s) / \sum p$ with s as in `_against_runner_up`."""
    first, second, others = _against_runner_up(log_p, top)
    log_total = first + torch.log1p((second - first).exp() * others)
    return second + torch.log1p(others) - log_total


def _error_of_many(log_p: Float[Tensor, "row value"]) -> Float[Tensor, " row"]:
    first, second, others = _against_runner_up(log_p)
    wrong = (second - first).exp() * others
    return wrong / (1.0 + wrong)


def _against_runner_up(log_p: Float[Tensor, "row value"], top: TopTwo | None = None) -> RunnerUp:
    r"""The largest two log-probabilities, and $s = \sum_{v \ne 1} p_v / p^{(2)}$, exact in any order of the values.

    Shares are at most 1. Rounded to whole numbers of $2^{-q}$ with $q = 52 - \lceil\log_2 V\rceil$ they add up in
    float64 without rounding, in any order; what that changes is at most $2^{-q-1}$ a value, or its last bit.
    """
    faster = _faster.get()
    found = None if faster is None else faster.against_runner_up(log_p)
    if found is not None:
        return found
    first, second, winner = TopTwo.of(log_p) if top is None else top
    share = log_p - second.clamp(min=torch.finfo(log_p.dtype).min)[:, None]
    # Not exp2, which takes a third of the time on some processors: on a CPU torch works the last few numbers of a
    # tensor out by another exp2, and a value's place would change its bits.
    share.scatter_(1, winner[:, None], -torch.inf).exp_()
    large = rounding_number(log_p)
    others = share.add_(large).sub_(large).sum(-1, dtype=torch.float64)
    return first.double(), second.double(), others


def rounding_number(log_p: Float[Tensor, "row value"]) -> float:
    """Beside this number the last bit that is kept stands for 2^-q, whatever the type."""
    digits = 23 if log_p.dtype == torch.float32 else 52
    return float(1.5 * 2.0 ** (digits - 52 + (log_p.shape[-1] - 1).bit_length()))


def margin(log_probs: Float[Tensor, "*expert batch cell value"] | Numbers) -> Doubts:
    r"""$C = p^{(1)} - p^{(2)}$ itself, for people to read. Compare log-doubts instead."""
    return -torch.expm1(log_doubt(log_probs))


def temper(log_probs: ExpertLogProbs, temperatures: Float[Tensor, " expert"]) -> ExpertLogProbs:
    r"""$\tilde p_m = \mathrm{softmax}(\log p_m / T_m)$: sharper for $T_m < 1$. Paper: Table "routing temperatures"."""
    if log_probs.shape[-1] <= LARGE:
        log_probs, temperatures = log_probs.double(), temperatures.double()
    return torch.log_softmax(log_probs / temperatures[:, None, None, None], dim=-1)


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
