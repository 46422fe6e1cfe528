"""SuperDiff for masked diffusion: one responsibility per expert and sample, from tracked densities."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, PerExpert, per_expert
from factordiff.composition.method import declare
from factordiff.composition.mixture import checked_weights, mixture
from factordiff.composition.options import BIAS, WEIGHTS, Option, check_sizes
from factordiff.composition.product import product
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.tensors import Floats, as_floats
from factordiff.types import Cells, ExpertLogProbs, LogDensities

SMALLEST_PROBABILITY = 1e-8  # an expert's hard zero would make a divergence infinite
AGREEMENT = 1e-12  # experts closer than this are the same


@declare(
    "superdiff",
    WEIGHTS,
    Option(
        "density_temperature",
        "How fast densities decide: 0 is the plain mixture.",
        default=1.0,
        argument="temperature",
    ),
    BIAS,
)
class SuperDiff(Composition):
    r"""SuperDiff OR: $r = \sum_m \kappa_m p_m$, $\kappa = \mathrm{softmax}_m(T(\ell_m + b_m) + \log\omega_m)$.

    $\ell_m = \log p_m(x_U)$ is tracked along the path, so at $T=1$ the samples are exactly from
    $\sum_m \omega_m p_m$. When a step reveals several cells, one expert is drawn for all of them: mixing each
    cell on its own would be wrong. In law this is "pick an expert, run it alone".

    Paper: Eq. (4).
    """

    by_cell = True  # whoever speaks for a row is drawn once for all its cells

    def __init__(
        self,
        weights: Floats | None = None,
        temperature: float = 1.0,
        bias: Floats | None = None,
    ) -> None:
        self.weights = checked_weights(weights)
        if not 0 <= temperature < float("inf"):
            raise InvalidInput(f"temperature: expected a finite non-negative number, got {temperature}")
        check_sizes("temperature", [float(temperature)])
        self.temperature = float(temperature)
        self.bias = checked_bias(bias)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The responsibility-weighted mixture, with the responsibilities beside it."""
        like = state.log_density_of_rows
        weights = per_expert("weights", self.weights, len(log_probs), 1.0, like)
        bias = per_expert("bias", self.bias, len(log_probs), 0.0, like)
        log_omega = (weights / weights.sum()).log()[:, None]
        log_kappa = responsibilities(like, self.temperature, bias[:, None], log_omega)
        return Composed(mixture(log_probs, log_kappa), log_kappa=log_kappa)

    @property
    def remembers(self) -> bool:
        """Yes: densities decide."""
        return self.temperature > 0

    def __repr__(self) -> str:
        return f"SuperDiff(weights={self.weights}, temperature={self.temperature}, bias={self.bias})"


def checked_bias(bias: Floats | None) -> PerExpert | None:
    """The biases as finite floats."""
    if bias is None:
        return None
    numbers = as_floats("bias", bias)
    if not all(math.isfinite(b) for b in numbers):
        raise InvalidInput(f"bias: expected finite numbers, one per expert, got {list(numbers)}")
    check_sizes("bias", numbers)
    return PerExpert(numbers)


def responsibilities(
    log_density: Float[Tensor, "expert *place"],
    temperature: float,
    bias: Float[Tensor, "expert *#place"],
    log_omega: Float[Tensor, "expert *#place"],
) -> Float[Tensor, "expert *place"]:
    r"""$\log\kappa_m$ of each row, or each cell; where every expert has ruled it out, the prior weights.

    At temperature 0 densities say nothing, and $0 \cdot \log 0 = 0$: nobody is ruled out.
    """
    if temperature == 0:
        return torch.log_softmax(log_omega.expand_as(log_density), dim=0)
    tempered = torch.where(log_density > -torch.inf, temperature * (log_density + bias), -torch.inf)
    score = tempered + log_omega
    possible = (score > -torch.inf).any(0)
    return torch.log_softmax(torch.where(possible, score, log_omega.expand_as(score)), dim=0)


@declare(
    "superdiff-and",
    Option("form", "How they combine.", kind="choice", default="geometric", choices=("geometric", "linear")),
)
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

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The balanced combination; `log_kappa` is not set, since no single expert speaks."""
        if self.form == "linear" and len(log_probs) != 2:
            raise InvalidInput(
                f"form: 'linear' is for two experts, got {len(log_probs)}; use form='geometric' for any number"
            )
        carried = state.log_density_of_rows
        log_density = (carried if self.carry else torch.zeros_like(carried)).clamp(min=-1e30)
        log_p = log_probs.double().clamp(min=torch.tensor(SMALLEST_PROBABILITY).log().item())
        if self.form == "linear":
            kappa = equalising_mixture(log_p, state.masked, log_density)
            return Composed(mixture(log_probs, kappa.log()))
        kappa = equalising_exponents(log_p, state.masked, log_density)
        return product(log_probs, kappa.to(log_probs.dtype))

    @property
    def remembers(self) -> bool:
        """Unless only the increments are equalised."""
        return self.carry

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
    return torch.where(masked, (_combined(log_p, kappa) * log_p).sum(-1), 0.0).sum(-1)


def equalising_exponents(
    log_p: ExpertLogProbs, masked: Cells, log_density: LogDensities, rounds: int = 30
) -> LogDensities:
    r"""The minimum of the convex J over the simplex, by exact line searches.

    The gradient is $\ell_m + D_m(\kappa)$. Each round first moves weight from the expert with the largest gradient
    among those that have any to the one with the smallest: this alone finds the minimum for two experts, and who
    takes part for more. Then Newton's direction among those that take part settles how much each gets.
    """
    experts, batch = log_density.shape
    kappa = torch.full_like(log_density, 1.0 / experts)
    rows = torch.arange(batch, device=kappa.device)
    for _ in range(rounds):
        slope = log_density + increments(log_p, masked, kappa)
        receiver = slope.argmin(0)
        giver = torch.where(kappa > 0, slope, -torch.inf).argmax(0)
        gap = slope[giver, rows] - slope[receiver, rows]
        if not (gap > AGREEMENT * (1 + slope.abs().amax(0))).any():
            break
        exchange = torch.zeros_like(kappa)
        exchange[receiver, rows] += 1.0
        exchange[giver, rows] -= 1.0
        kappa = _descended(log_p, masked, log_density, kappa, exchange)
        if experts > 2:
            newton = _newton_direction(log_p, masked, log_density, kappa)
            kappa = _descended(log_p, masked, log_density, kappa, newton)
    return kappa


def _combined(log_p: ExpertLogProbs, kappa: LogDensities) -> Float[Tensor, "batch cell value"]:
    return torch.softmax((kappa[:, :, None, None] * log_p).sum(0), dim=-1)


def _descended(
    log_p: ExpertLogProbs, masked: Cells, log_density: LogDensities, kappa: LogDensities, along: LogDensities
) -> LogDensities:
    """The lowest point of J from `kappa` along a direction, no further than the simplex reaches."""
    reach = torch.where(along < 0, kappa / -along, torch.inf).amin(0)
    reach = torch.where(reach.isfinite(), reach, 0.0)
    log_along = (along[:, :, None, None] * log_p).sum(0)
    low, high, step = torch.zeros_like(reach), reach, reach
    # J's slope along the direction rises; Newton's method inside a bracket that shrinks around its zero.
    for _ in range(64):
        r = _combined(log_p, kappa + step * along)
        mean = (r * log_along).sum(-1)
        curvature = torch.where(masked, (r * (log_along - mean.unsqueeze(-1)).square()).sum(-1), 0.0).sum(-1)
        slope = (along * log_density).sum(0) + torch.where(masked, mean, 0.0).sum(-1)
        low, high = torch.where(slope > 0, low, step), torch.where(slope > 0, step, high)
        newton = step - slope / curvature
        moved = torch.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if ((moved - step).abs() <= 1e-16).all():
            break
        step = moved
    kappa = kappa + step * along
    kappa = torch.where(kappa > 1e-15, kappa, 0.0)
    return kappa / kappa.sum(0)


def _newton_direction(
    log_p: ExpertLogProbs, masked: Cells, log_density: LogDensities, kappa: LogDensities
) -> LogDensities:
    """Where Newton's method would go among the experts that have weight, which keep their sum."""
    r = _combined(log_p, kappa)
    mean = (r * log_p).sum(-1, keepdim=True)
    spread = torch.where(masked.unsqueeze(-1), r.sqrt(), 0.0) * (log_p - mean)
    curvature = torch.einsum("mbcv,nbcv->bmn", spread, spread)
    slope = log_density + torch.where(masked, mean.squeeze(-1), 0.0).sum(-1)
    free = (kappa > 0).to(slope.dtype).T
    scale = curvature.diagonal(dim1=1, dim2=2).sum(-1)[:, None, None] + 1.0
    curvature = curvature * free[:, :, None] * free[:, None, :]
    curvature = curvature + 1e-12 * scale * torch.eye(len(kappa), dtype=slope.dtype, device=slope.device)
    down, level = torch.linalg.solve(curvature, torch.stack([-slope.T * free, free], dim=-1)).unbind(-1)
    down, level = down * free, level * free
    direction = down - level * (down.sum(-1) / level.sum(-1)).unsqueeze(-1)
    direction = direction / direction.abs().amax(-1, keepdim=True).clamp(min=1e-300)
    # Rounding must not change the sum, least of all where one expert has all the weight.
    return (direction - free * (direction.sum(-1) / free.sum(-1)).unsqueeze(-1)).T
