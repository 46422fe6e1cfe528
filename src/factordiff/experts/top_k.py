"""Distributions over a large vocabulary, cut to their likeliest values: k of them, and a remainder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.schema.values import Whole

KEPT = Whole(2)  # values at the least: a margin needs two
ROUNDING = 1e-9  # by which the sum of exponents may seem smaller than 1: six times a sixth does


@dataclass(frozen=True)
class TopK:
    r"""The k likeliest values of each distribution as they are; the others share the remainder evenly.

    $\tilde p(v) = p(v)$ for the k likeliest, $\epsilon / (V - k)$ elsewhere, with
    $\epsilon = 1 - \sum_{\text{kept}} p$. Then $TV(p, \tilde p) \le \epsilon$; the margin is that of p; a mixture is
    off by at most $\sum_m \omega_m \epsilon_m$, hard routing by the $\epsilon$ of whom a cell is routed to
    (`log_rest`), and a product by `product_bound`.
    """

    values: Int[Tensor, "cell kept"]
    log_probs: Float[Tensor, "cell kept"]
    log_rest: Float[Tensor, " cell"]  # log epsilon
    size: int  # V

    @classmethod
    def of(cls, log_probs: Float[Tensor, "cell value"], k: int) -> TopK:
        """The cut form of these distributions."""
        size = log_probs.shape[-1]
        KEPT.read(k, "top_k")
        kept, values = log_probs.topk(min(k, size), dim=-1, sorted=False)
        # What is left is added up, not taken from 1, which would round to 0.
        left = torch.where(_is_kept(values, size), -torch.inf, log_probs)
        return cls(values, kept, left.logsumexp(-1), size)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of its numbers."""
        return self.log_probs.dtype

    def at(self, cells: Int[Tensor, " some"]) -> Float[Tensor, "some value"]:
        """The distributions of some cells, of full length."""
        kept = self.values[cells]
        others = self.size - kept.shape[-1]
        even = self.log_rest[cells, None] - torch.tensor(max(others, 1), dtype=self.dtype).log()
        full = even.expand(-1, self.size).clone()
        return full.scatter_(-1, kept, self.log_probs[cells])


def product_bound(
    cut: list[TopK], beta: Float[Tensor, " expert"], cells: Int[Tensor, " some"]
) -> Float[Tensor, " some"]:
    r"""How far the product of cut experts may be from $\prod_m p_m^{\beta_m}$, normalised, in total variation.

    Both are proportional to the same numbers on the values E that every expert kept, of sum A. What either has
    elsewhere is at most B: a value that an expert cut has at most the least it kept, or its remainder, and those that
    all cut at most $\prod_m \epsilon_m^{\beta_m}$ together (Hölder, for $\sum\beta_m \ge 1$). So $TV \le B / (A + B)$.
    """
    if float(beta.sum()) < 1 - ROUNDING:
        raise InvalidInput(
            f"beta: the bound holds for exponents that sum to 1 or more, got {float(beta.sum()):g}"
        )
    most, kept_by = [], []
    for one, exponent in zip(cut, beta.tolist(), strict=True):
        least = torch.minimum(one.log_probs[cells].amin(-1), one.log_rest[cells]).double()
        upper = least[:, None].expand(-1, one.size).clone()
        upper.scatter_(-1, one.values[cells], one.log_probs[cells].double())
        most.append(exponent * upper if exponent else torch.zeros_like(upper))
        kept_by.append(_is_kept(one.values[cells], one.size) | (exponent == 0))
    log_most, kept = torch.stack(most).sum(0), torch.stack(kept_by)
    rests = [
        exponent * one.log_rest[cells].double()
        for one, exponent in zip(cut, beta.tolist(), strict=True)
        if exponent  # who does not count has no remainder either: 0 times the logarithm of 0 is no number
    ]
    common = torch.where(kept.all(0), log_most, -torch.inf).logsumexp(-1)
    some = torch.where(kept.any(0) & ~kept.all(0), log_most, -torch.inf).logsumexp(-1)
    outside = torch.logaddexp(some, torch.stack(rests).sum(0))
    # Where nothing was lost nothing is off, whatever is left: it may be no value at all.
    return torch.where(outside > -torch.inf, (outside - torch.logaddexp(common, outside)).exp(), 0.0)


def _is_kept(values: Int[Tensor, "cell kept"], size: int) -> Tensor:
    return torch.zeros(len(values), size, dtype=torch.bool, device=values.device).scatter_(-1, values, True)
