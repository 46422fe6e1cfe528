"""One expert drawn for each cell and step: what it says is a draw from the mixture."""

from __future__ import annotations

from dataclasses import replace

from factordiff.composition.composition import Composed, Composition, per_expert
from factordiff.composition.emission import drawn_speakers
from factordiff.composition.method import declare
from factordiff.composition.mixture import checked_weights, mixture
from factordiff.composition.options import WEIGHTS
from factordiff.state import SamplerState
from factordiff.tensors import Floats
from factordiff.types import ExpertLogProbs


@declare("drawn-expert", WEIGHTS, drawn=True)
class DrawnExpert(Composition):
    r"""For each cell and step an expert $z_i \sim \omega$ is drawn, and the value from it: $x_i \sim p_{z_i,i}$.

    Whoever does not know who was drawn sees the plain mixture, $\sum_m \omega_m p_{m,i}$: the law is that of `Mixture`
    with drawn values, in every order and for any number of cells a step. For that the order must not know who was
    drawn either, so reveal rules are shown the mixture; by the drawn expert's own confidence surer experts would speak
    more often than by their weight. An order that asks nobody (drawn, or from left to right) needs one pass a step;
    the loop asks all experts nevertheless, and counts that. At a sampling temperature other than 1 the drawn experts
    are sharpened, not their mixture; at 0 it is `Mixture`.

    Source: arXiv 2605.00419, one model drawn per token; cells and orders are ours.
    """

    def __init__(self, weights: Floats | None = None) -> None:
        self.weights = checked_weights(weights)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The mixture of each cell, and who will speak for it if it is revealed now."""
        weights = per_expert("weights", self.weights, len(log_probs), 1.0, log_probs.new_zeros(()).double())
        omega = (weights / weights.sum())[:, None, None].expand(-1, *state.x_t.shape)
        mixed = Composed(mixture(log_probs, omega.log()), log_kappa=omega.log(), weights=omega)
        return replace(mixed, routing=drawn_speakers(mixed, state))

    @property
    def by_cell(self) -> bool:
        """Yes: each cell has a draw of its own."""
        return True

    def __repr__(self) -> str:
        return "DrawnExpert()" if self.weights is None else f"DrawnExpert({list(self.weights)})"
