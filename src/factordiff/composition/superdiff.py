"""SuperDiff for masked diffusion: one responsibility per expert and sample, from tracked densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, State, checked, per_expert
from factordiff.composition.mixture import mixture
from factordiff.composition.product import product
from factordiff.errors import InvalidInput
from factordiff.types import Cells, ExpertLogProbs, LogDensities

SMALLEST_PROBABILITY = 1e-8  # an expert's hard zero would make a divergence infinite
AGREEMENT = 1e-12  # experts closer than this are the same


class SuperDiff(Composition):
    r"""SuperDiff OR: $r = \sum_m \kappa_m p_m$, $\kappa = \mathrm{softmax}_m(T(\ell_m + b_m) + \log\omega_m)$.

    $\ell_m = \log p_m(x_U)$ is tracked along the path, so at $T=1$ the samples are exactly from
    $\sum_m \omega_m p_m$. When a step reveals several cells, one expert is drawn for all of them: mixing each
    cell on its own would be wrong. In law this is "pick an expert, run it alone".

    Paper: Eq. (4).
    """

    def __init__(
        self,
        weights: Sequence[float] | None = None,
        temperature: float = 1.0,
        bias: Sequence[float] | None = None,
    ) -> None:
        self.weights = checked("weights", weights, positive=False)
        if not 0 <= temperature < float("inf"):
            raise InvalidInput(f"temperature: expected a finite non-negative number, got {temperature}")
        self.temperature = float(temperature)
        self.bias = None if bias is None else tuple(float(b) for b in bias)

    def __call__(self, log_probs: ExpertLogProbs, state: State) -> Composed:
        """The responsibility-weighted mixture, with the responsibilities beside it."""
        like = state.log_density
        weights = per_expert("weights", self.weights, len(log_probs), 1.0, like)
        bias = per_expert("bias", self.bias, len(log_probs), 0.0, like)
        log_omega = (weights / weights.sum()).log()[:, None]
        log_kappa = responsibilities(like, self.temperature, bias[:, None], log_omega)
        return Composed(mixture(log_probs, log_kappa), log_kappa=log_kappa)

    def __repr__(self) -> str:
        return f"SuperDiff(weights={self.weights}, temperature={self.temperature}, bias={self.bias})"


def responsibilities(
    log_density: LogDensities,
    temperature: float,
    bias: Float[
        Tensor,
        (
            expert  # batch
        ),
    ],
    log_omega: Float[
        Tensor,
        (
            expert  # batch
        ),
    ],
) -> LogDensities:
    r"""$\log\kappa_m$; where every expert has ruled the state out, the prior weights."""
    tempered = torch.where(log_density > -torch.inf, temperature * (log_density + bias), -torch.inf)
    score = tempered + log_omega
    possible = (score > -torch.inf).any(0)
    return torch.log_softmax(torch.where(possible, score, log_omega.expand_as(score)), dim=0)


class SuperDiffAnd(Composition):
    r"""SuperDiff AND: one $\kappa$ per sample that equalises the experts' expected log-density increments.

    `linear` (two experts): $r = \kappa p_1 + (1-\kappa) p_2$ with
    $\kappa = (KL(p_2\|p_1) - \Delta) / (KL(p_1\|p_2) + KL(p_2\|p_1))$, clamped to [0, 1], where
    $\Delta = \ell_1 - \ell_2$ is the imbalance carried so far.
    `geometric` (any number): $r \propto \prod_m p_m^{\kappa_m}$, $\kappa$ the minimum over the simplex of
    $J(\kappa) = \sum_i \log\sum_v\prod_m p_{m,i}(v)^{\kappa_m} + \sum_m \kappa_m \ell_m$, which is convex; at it
    $\ell_m + E_r[\log p_m]$ is the same for every expert that takes part.
    Increments are over all masked cells. `carry=False` equalises the increments alone.

    Paper: section "Composing Diffusion Models" (the discrete analogue is ours).
    """

    def __init__(self, form: Literal["geometric", "linear"] = "geometric", carry: bool = True) -> None:
        if form not in ("geometric", "linear"):
            raise InvalidInput(f"form: expected 'geometric' or 'linear', got {form!r}")
        self.form = form
        self.carry = carry

    def __call__(self, log_probs: ExpertLogProbs, state: State) -> Composed:
        """The balanced combination; `log_kappa` is not set, since no single expert speaks."""
        if self.form == "linear" and len(log_probs) != 2:
            raise InvalidInput(
                f"form: 'linear' is for two experts, got {len(log_probs)}; use form='geometric' for any number"
            )
        log_density = state.log_density if self.carry else torch.zeros_like(state.log_density)
        log_density = log_density.clamp(min=-1e30)
        log_p = log_probs.double().clamp(min=torch.tensor(SMALLEST_PROBABILITY).log().item())
        if self.form == "linear":
            kappa = equalising_mixture(log_p, state.masked, log_density)
            return Composed(mixture(log_probs, kappa.log()))
        kappa = equalising_exponents(log_p, state.masked, log_density)
        return product(log_probs, kappa.to(log_probs.dtype))

    def __repr__(self) -> str:
        return f"SuperDiffAnd(form={self.form!r}, carry={self.carry})"


def equalising_mixture(log_p: ExpertLogProbs, masked: Cells, log_density: LogDensities) -> LogDensities:
    r"""The linear form's $(\kappa, 1-\kappa)$; 1/2 each where the experts agree."""
    p = log_p.exp()
    ratio = log_p[0] - log_p[1]
    kl_12 = torch.where(masked, (p[0] * ratio).sum(-1), 0.0).sum(-1)
    kl_21 = torch.where(masked, -(p[1] * ratio).sum(-1), 0.0).sum(-1)
    total = kl_12 + kl_21
    kappa = ((kl_21 - (log_density[0] - log_density[1])) / total).clamp(0.0, 1.0)
    kappa = torch.where(total > AGREEMENT, kappa, 0.5)
    return torch.stack([kappa, 1.0 - kappa])


def increments(log_p: ExpertLogProbs, masked: Cells, kappa: LogDensities) -> LogDensities:
    r"""$D_m(\kappa) = \sum_{i\text{ masked}} E_{r_i}[\log p_{m,i}]$ for $r \propto \prod_m p_m^{\kappa_m}$."""
    r = torch.softmax((kappa[:, :, None, None] * log_p).sum(0), dim=-1)
    return torch.where(masked, (r * log_p).sum(-1), 0.0).sum(-1)


def equalising_exponents(
    log_p: ExpertLogProbs, masked: Cells, log_density: LogDensities, rounds: int = 100
) -> LogDensities:
    r"""The minimum of the convex J over the simplex, by exact line searches between two experts at a time.

    The gradient is $\ell_m + D_m(\kappa)$. Each round moves weight from the expert with the largest gradient
    among those that have any to the one with the smallest, up to where the two are equal.
    """
    experts, batch = log_density.shape
    kappa = torch.full_like(log_density, 1.0 / experts)
    rows = torch.arange(batch, device=kappa.device)

    def gradient(at: LogDensities) -> LogDensities:
        return log_density + increments(log_p, masked, at)

    for _ in range(rounds):
        slope = gradient(kappa)
        receiver = slope.argmin(0)
        giver = torch.where(kappa > 0, slope, -torch.inf).argmax(0)
        gap = slope[giver, rows] - slope[receiver, rows]
        if not (gap > AGREEMENT).any():
            break
        # The slope of J along (receiver - giver) rises with the weight moved: bisect for its zero.
        low, high = torch.zeros_like(gap), kappa[giver, rows]
        for _ in range(64):
            middle = (low + high) / 2
            slope = gradient(_moved(kappa, giver, receiver, middle))
            falling = slope[receiver, rows] < slope[giver, rows]
            low, high = torch.where(falling, middle, low), torch.where(falling, high, middle)
        kappa = _moved(kappa, giver, receiver, torch.where(gap > AGREEMENT, (low + high) / 2, 0.0))
    return kappa


def _moved(kappa: LogDensities, giver: Tensor, receiver: Tensor, weight: Tensor) -> LogDensities:
    rows = torch.arange(kappa.shape[1], device=kappa.device)
    kappa = kappa.clone()
    kappa[giver, rows] -= weight
    kappa[receiver, rows] += weight
    return kappa.clamp(0.0, 1.0)
