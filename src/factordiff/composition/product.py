"""Products of experts, cell by cell (the naive AND), and the mass they lose."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, checked, per_expert
from factordiff.composition.method import declare
from factordiff.composition.options import BETA
from factordiff.state import SamplerState
from factordiff.tensors import Floats
from factordiff.types import ExpertLogProbs


def product(log_probs: ExpertLogProbs, beta: Float[Tensor, "expert *batch_cell"]) -> Composed:
    r"""Weighted product of experts, cell by cell, with the mass it loses.

    $r(v) \propto \prod_m p_m(v)^{\beta_m}$ and $\log z = \log \sum_v \prod_m p_m(v)^{\beta_m}$.
    `log_z` is the correction a particle owes for each revealed cell; without it the samples are not from the
    product. Where the experts share no value at all, $\log z = -\infty$ and r is uniform: the sampler goes on,
    and a corrected particle dies.

    Paper: Eq. (3), (7).
    """
    log_r = power(log_probs, beta).sum(0)
    log_z = log_r.logsumexp(-1)
    uniform = -math.log(log_r.shape[-1])
    return Composed(
        torch.where(log_z.unsqueeze(-1) > -torch.inf, log_r - log_z.unsqueeze(-1), uniform), log_z
    )


def power(log_probs: ExpertLogProbs, beta: Float[Tensor, "expert *batch_cell"]) -> ExpertLogProbs:
    r"""$\beta_m \log p_m(v)$, where $0 \cdot \log 0 = 0$: an expert with exponent 0 forbids nothing."""
    while beta.dim() < log_probs.dim():
        beta = beta.unsqueeze(-1)
    return torch.where(beta == 0, 0.0, beta * log_probs)


@declare("product", BETA)
class Product(Composition):
    r"""$r_i(v) \propto \prod_m p_{m,i}(v)^{\beta_m}$ (default $\beta_m = 1$).

    Alone it does not sample the product of the experts' joints; with particles it does (`feynman_kac`).

    Paper: Eq. (3), (7).
    """

    by_cell = True

    def __init__(self, beta: Floats | None = None) -> None:
        self.beta = checked("beta", beta, positive=False)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The normalised product at each cell and its log mass."""
        return product(log_probs, per_expert("beta", self.beta, len(log_probs), 1.0, log_probs))

    def __repr__(self) -> str:
        return "Product()" if self.beta is None else f"Product({list(self.beta)})"


@declare("geometric-mean")
class GeometricMean(Composition):
    r"""$r_i(v) \propto \prod_m p_{m,i}(v)^{1/M}$: the table's "Average (PoE)".

    Paper: Eq. (3), Table 2.
    """

    by_cell = True

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The normalised geometric mean at each cell and its log mass."""
        experts = len(log_probs)
        return product(log_probs, per_expert("beta", None, experts, 1.0 / experts, log_probs))

    def __repr__(self) -> str:
        return "GeometricMean()"
