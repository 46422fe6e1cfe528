"""Learned routing: a small network, fitted on held-out data, says how much each frozen expert counts at each cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.method import declare
from factordiff.composition.mixture import mixture
from factordiff.composition.options import Option
from factordiff.composition.product import product
from factordiff.composition.router import Head, Router, RouterConfig, RouterOutput
from factordiff.composition.router_store import load_router
from factordiff.state import SamplerState
from factordiff.types import ExpertCells, ExpertLogProbs


@declare(
    "learned",
    Option("router", "The folder of a fitted router, as `factordiff fit` writes it.", kind="router"),
    Option(
        "other_experts",
        "Whether a router may be used with experts it was not fitted to.",
        kind="choice",
        default="refuse",
        choices=("refuse", "allow"),
    ),
)
class Learned(Composition):
    r"""Weights by a fitted router: $r_v = \sum_m \alpha_{m,v}\, p_{m,v}$, $\alpha = \mathrm{softmax}_m\, g_\theta$.

    With a product head $r_v \propto \prod_m p_{m,v}^{\beta_{m,v}}$, $\beta_{m,v} = e^{g_\theta} / M$, positive and not
    otherwise constrained. Without a router, and with one that is not trained, it is the uniform mixture bit for bit
    (product head: the geometric mean). A router with a complement adds its own logits to what is composed.

    Paper: Eq. (8); the weights are ours.
    """

    def __init__(self, router: Router | str | Path | None = None, other_experts: str = "refuse") -> None:
        self.router = load_router(router) if isinstance(router, str | Path) else router
        self.other_experts = other_experts

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """What the router makes of the experts; the routing map names the heaviest."""
        experts, _, _, values = log_probs.shape
        router = self.router or Router.new(RouterConfig(max(experts, 2), values))
        return combined(log_probs, router(log_probs, state), router.config.head)

    @property
    def remembers(self) -> bool:
        """A router that looks at evidence does: it is what a row's path has brought."""
        return self.router is not None and self.router.config.evidence

    def __repr__(self) -> str:
        return f"Learned({'untrained' if self.router is None else self.router!r})"


def combined(log_probs: ExpertLogProbs, routed: RouterOutput, head: Head) -> Composed:
    """The experts as a router weights them."""
    # Contiguous: another order in memory adds up in another order, and the last bit would differ from a mixture's.
    logits = routed.logits.to(log_probs.dtype).contiguous()
    if head == "mixture":
        weights = torch.softmax(logits, 0)
        composed = Composed(mixture(log_probs, weights.log()))
    else:
        weights = exponents(logits)
        composed = product(log_probs, weights)
    if routed.complement is not None:
        corrected = torch.log_softmax(composed.log_probs + routed.complement.to(log_probs.dtype), -1)
        composed = replace(composed, log_probs=corrected)
    return replace(composed, routing=weights.max(0).indices, weights=weights)


def exponents(logits: ExpertCells) -> Float[Tensor, "expert batch cell"]:
    r"""$\beta_{m,v} = e^{g_{m,v}} / M$."""
    return logits.exp() * (1.0 / len(logits))
