"""Factor-wise composition: weights per factor, hard routing by confidence (the paper), soft routing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, checked, per_expert
from factordiff.composition.confidence import AGGREGATES, Aggregate, aggregate_log_doubt, log_doubt, temper
from factordiff.composition.contenders import contending_log_doubts
from factordiff.composition.factors import Labels, Partition, as_partition, labels_for
from factordiff.composition.method import declare
from factordiff.composition.options import FACTORS, TEMPERATURES, Option, check_sizes
from factordiff.composition.product import product
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.tensors import Floats, Numbers, as_tensor
from factordiff.types import CellLogProbs, Cells, ExpertLogProbs, RoutingMap

Form = Literal["geometric", "linear"]


def route(log_doubts: Float[Tensor, "expert batch cell"]) -> RoutingMap:
    r"""The routing map: each cell to the expert with the largest confidence.

    $z_v = \arg\max_k \mathcal{C}(p_k(x_v \mid x_t))$, $\mathcal{C}(p) = p^{(1)} - p^{(2)}$: the least log-doubt.
    Ties go to the first expert in the list.

    Paper: Eq. (11).
    """
    # Ties as argmin has them, which takes 25 times as long along the first axis on a CPU.
    return log_doubts.min(dim=0).indices


def routed(log_probs: ExpertLogProbs, z: RoutingMap) -> CellLogProbs:
    r"""The composed step: $\sum_k \mathbb{1}[z_v = k]\, p_k(x_v \mid x_t)$. Paper: Eq. (10), (12)."""
    _, rows, cells, values = log_probs.shape
    # Distributions are copied whole: value by value, large vocabularies took as long as a sum over them.
    place = z.flatten() * (rows * cells) + torch.arange(rows * cells, device=z.device)
    return log_probs.reshape(-1, values).index_select(0, place).view(rows, cells, values)


@declare("routing", TEMPERATURES, FACTORS)
class Routing(Composition):
    r"""FactorDiff: each factor is routed to the expert that is surest about it.

    Temperatures $T_m$ sharpen or soften an expert's confidence before experts are compared; what the chosen
    expert says is passed on untempered. Without a partition every cell is its own factor (the paper's
    per-pixel maximum). `order="tempered"` also orders the reveals by the tempered margins.

    Paper: Eq. (8) with one-hot weights, Eq. (10)-(12), Table "routing temperatures".
    """

    def __init__(
        self,
        partition: Partition | Numbers | None = None,
        temperatures: Floats | None = None,
        aggregate: Aggregate = "mean",
        order: Literal["raw", "tempered"] = "raw",
    ) -> None:
        if aggregate not in AGGREGATES:
            raise InvalidInput(f"aggregate: expected one of {', '.join(AGGREGATES)}, got {aggregate!r}")
        if order not in ("raw", "tempered"):
            raise InvalidInput(f"order: expected 'raw' or 'tempered', got {order!r}")
        self.partition = None if partition is None else as_partition(partition)
        self.temperatures = checked("temperatures", temperatures, positive=True)
        self.aggregate = aggregate
        self.order = order

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The routed distribution of each cell and the routing map."""
        told = tempered(log_probs, self.temperatures)
        # A factor's confidence is made of all its cells; of a cell alone, the surest expert is all that is asked for.
        doubts = contending_log_doubts(told) if self.partition is None else log_doubt(told)
        z = route(factor_log_doubts(doubts, self.partition, state, self.aggregate))
        # Untempered, an expert's doubt is the composed cell's: no need to work it out again.
        known = self.order == "tempered" or self.temperatures is None
        order = doubts.gather(0, z.unsqueeze(0)).squeeze(0) if known else None
        return Composed(routed(log_probs, z), routing=z, log_doubt=order)

    @property
    def by_cell(self) -> bool:
        """Where every cell is its own factor."""
        return self.partition is None

    def __repr__(self) -> str:
        shape = "pixels" if self.partition is None else "partition"
        return f"Routing({shape}, temperatures={self.temperatures}, aggregate={self.aggregate!r})"


@declare(
    "soft-routing",
    Option("softness", "0 is hard routing, a large one the uniform mixture.", default=0.1, above=True),
    TEMPERATURES,
    FACTORS,
)
class SoftRouting(Composition):
    r"""Weights $\alpha_{m,f} = \mathrm{softmax}_m(C_{m,f} / \lambda)$ in place of the maximum.

    $\lambda \to 0$ is hard routing; $\lambda \to \infty$ the uniform mixture (`linear`) or geometric mean.

    Paper: Eq. (8).
    """

    def __init__(
        self,
        softness: float = 0.1,
        partition: Partition | Numbers | None = None,
        temperatures: Floats | None = None,
        form: Form = "linear",
    ) -> None:
        if not 0 < softness < float("inf"):
            raise InvalidInput(f"softness: expected a finite positive number, got {softness}")
        check_sizes("softness", [float(softness)])
        self.softness = float(softness)
        self.partition = None if partition is None else as_partition(partition)
        self.temperatures = checked("temperatures", temperatures, positive=True)
        self.form = _checked_form(form)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The weighted distribution of each cell; the routing map names the heaviest expert."""
        doubts = tempered_log_doubts(log_probs, self.temperatures)
        doubts = factor_log_doubts(doubts, self.partition, state, "mean")
        # softmax(C / lambda) = softmax(-(1 - C) / lambda)
        alpha = torch.softmax(-doubts.exp() / self.softness, dim=0)
        return Composed(weighted(log_probs, alpha, self.form), routing=route(doubts), weights=alpha)

    @property
    def by_cell(self) -> bool:
        """Where every cell is its own factor."""
        return self.partition is None

    def __repr__(self) -> str:
        return f"SoftRouting({self.softness}, temperatures={self.temperatures}, form={self.form!r})"


class FactorWeights(Composition):
    r"""Weights $\alpha_{m,f}$ given by the user, one per expert and factor.

    `geometric`: $r_i \propto \prod_m p_{m,i}^{\alpha_{m,f(i)}}$. `linear`: $r_i = \sum_m \alpha_{m,f(i)} p_{m,i}$,
    weights normalised over the experts. With one-hot weights both are hard routing.

    Paper: Eq. (8).
    """

    def __init__(
        self,
        alpha: Float[Tensor, "expert factor"] | Numbers,
        partition: Partition | Numbers,
        form: Form = "geometric",
    ) -> None:
        alpha = as_tensor("alpha", alpha)
        real = not alpha.is_complex()
        if alpha.dim() != 2 or not real or not torch.isfinite(alpha).all() or (alpha < 0).any():
            what = f"shape {tuple(alpha.shape)}" if alpha.dim() != 2 else f"{alpha.tolist()}"
            raise InvalidInput(f"alpha: expected finite non-negative weights (expert, factor), got {what}")
        self.form = _checked_form(form)
        if self.form == "linear":
            if (alpha.sum(0) <= 0).any():
                raise InvalidInput("alpha: expected a positive weight for some expert in every factor")
            alpha = alpha / alpha.sum(0)
        self.alpha = alpha
        self.partition = as_partition(partition)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The weighted distribution of each cell."""
        experts, factors = self.alpha.shape
        if experts != len(log_probs):
            raise InvalidInput(f"alpha: expected weights for {len(log_probs)} experts, got {experts}")
        labels = labels_for(self.partition, state)
        if labels.numel() and int(labels.max()) >= factors:
            raise InvalidInput(
                f"alpha: expected weights for {int(labels.max()) + 1} factors (the partition's labels), "
                f"got {factors}"
            )
        alpha = self.alpha.to(log_probs.device)[:, labels]
        return Composed(weighted(log_probs, alpha, self.form), weights=alpha)

    def __repr__(self) -> str:
        return f"FactorWeights(alpha={tuple(self.alpha.shape)}, form={self.form!r})"


def weighted(
    log_probs: ExpertLogProbs, alpha: Float[Tensor, "expert batch cell"], form: Form
) -> CellLogProbs:
    r"""$\prod_m p_m^{\alpha_m}$, normalised, or $\sum_m \alpha_m p_m$, cell by cell. Paper: Eq. (8)."""
    alpha = alpha.to(log_probs.dtype)
    if form == "geometric":
        return product(log_probs, alpha).log_probs
    return (alpha.log().unsqueeze(-1) + log_probs).logsumexp(0)


def tempered_log_doubts(
    log_probs: ExpertLogProbs, temperatures: Sequence[float] | None
) -> Float[Tensor, "expert batch cell"]:
    """Each expert's log-doubt at each cell, after its routing temperature."""
    return log_doubt(tempered(log_probs, temperatures))


def tempered(log_probs: ExpertLogProbs, temperatures: Sequence[float] | None) -> ExpertLogProbs:
    """What confidence is read of: each expert's distributions, after its routing temperature if there are any."""
    if temperatures is None:
        return log_probs
    return temper(log_probs, per_expert("temperatures", temperatures, len(log_probs), 1.0, log_probs))


def factor_log_doubts(
    doubts: Float[Tensor, "expert batch cell"],
    partition: Partition | None,
    state: SamplerState,
    how: Aggregate,
) -> Float[Tensor, "expert batch cell"]:
    """Each expert's log-doubt about the factor of each cell; without a partition, about the cell itself."""
    if partition is None:
        return doubts
    labels: Labels = labels_for(partition, state)
    masked: Cells = state.masked
    return aggregate_log_doubt(doubts, labels, masked, how)


def _checked_form(form: Form) -> Form:
    if form not in ("geometric", "linear"):
        raise InvalidInput(f"form: expected 'geometric' or 'linear', got {form!r}")
    return form
