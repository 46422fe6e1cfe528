r"""Particle correctors: any proposal, corrected towards $\prod_m p_m^{\beta_m}$ by importance weights.

Feynman-Kac correctors and RNE have the same target and, in masked diffusion, the same weight; they differ in
the proposal. The schedule's probabilities cancel, and what remains is a sum over the revealed cells:

$\log w \mathrel{+}= \sum_{i\text{ revealed}} \big[\sum_m \beta_m \log p_{m,i}(x_i) - \log r_i(x_i)\big]$

with r the distribution that was really drawn from. With one reveal per step and exact experts
$E[w\,1\{x_0\}] = \prod_m p_m(x_0)^{\beta_m}$ for every order that does not look at the drawn values.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, checked, per_expert
from factordiff.composition.method import declare
from factordiff.composition.mixture import Mixture
from factordiff.composition.options import BETA, PARTICLES, RESAMPLING, SELECTION, WEIGHTS
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.superdiff import SuperDiff
from factordiff.state import SamplerState
from factordiff.tensors import Floats
from factordiff.types import ExpertLogProbs


class Corrected(Composition):
    r"""A proposal with the exponents $\beta_m$ of the target its particles are weighted towards."""

    remembers = True  # its weights belong to the path

    def __init__(self, proposal: Composition, beta: Floats | None = None) -> None:
        self.proposal = proposal
        self.beta = checked("beta", beta, positive=False)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The proposal's distribution."""
        return self.proposal(log_probs, state)

    def target(self, experts: int) -> Float[Tensor, " expert"]:
        r"""The exponents (default $1/M$)."""
        return per_expert("beta", self.beta, experts, 1.0 / experts, torch.empty((), dtype=torch.float64))

    @property
    def by_cell(self) -> bool:
        """As the proposal, unless the cells of a row share their speaker: their weight is joint then."""
        return self.proposal.by_cell and not isinstance(self.proposal, SuperDiff)

    def __repr__(self) -> str:
        return f"Corrected({self.proposal!r}, beta={self.beta})"


@declare("fkc", BETA, PARTICLES, SELECTION, RESAMPLING, drawn=True)
def feynman_kac(beta: Floats | None = None) -> Corrected:
    r"""Feynman-Kac correctors (FKC): the product as proposal, so that a reveal costs $\log z_i$.

    Exponents default to $1/M$. Paper: Eq. (5).
    """
    return Corrected(GeometricMean() if beta is None else Product(beta), beta)


@declare("rne", BETA, WEIGHTS, PARTICLES, SELECTION, RESAMPLING, drawn=True)
def rne(
    beta: Floats | None = None,
    proposal: Composition | None = None,
    weights: Floats | None = None,
) -> Corrected:
    r"""RNE: path-ratio weights under any proposal (default: a mixture with these weights). Exponents default to $1/M$.

    The proposal must be able to draw whatever the target allows; a mixture of all experts always can.

    Paper: Eq. (6).
    """
    return Corrected(Mixture(weights) if proposal is None else proposal, beta)
