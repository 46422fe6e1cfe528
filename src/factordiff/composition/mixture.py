"""Mixture of experts, cell by cell (the naive OR)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, PerExpert, checked, per_expert
from factordiff.composition.method import declare
from factordiff.composition.options import WEIGHTS
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.tensors import Floats
from factordiff.types import CellLogProbs, ExpertLogProbs


def mixture(log_probs: ExpertLogProbs, log_weights: Float[Tensor, "expert *batch"]) -> CellLogProbs:
    r"""$\log r(v) = \log\sum_m \omega_m p_m(v)$, with one weight per expert or per expert and row.

    Paper: Eq. (2).
    """
    while log_weights.dim() < log_probs.dim():
        log_weights = log_weights.unsqueeze(-1)
    return (log_weights.to(log_probs.dtype) + log_probs).logsumexp(0)


@declare("mixture", WEIGHTS)
class Mixture(Composition):
    r"""$r_i(v) = \sum_m \omega_m\, p_{m,i}(v)$ with fixed weights (default $1/M$).

    Each cell is mixed on its own, so samples are *not* from the mixture of the experts' joints: one cell may
    follow the first expert and its neighbour the second. SuperDiff OR keeps count and is exact.

    Paper: Eq. (2).
    """

    by_cell = True

    def __init__(self, weights: Floats | None = None) -> None:
        self.weights = checked_weights(weights)

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The mixed distribution of each cell."""
        weights = per_expert("weights", self.weights, len(log_probs), 1.0, log_probs)
        return Composed(mixture(log_probs, (weights / weights.sum()).log()))

    def __repr__(self) -> str:
        return "Mixture()" if self.weights is None else f"Mixture({list(self.weights)})"


def checked_weights(weights: Floats | None) -> PerExpert | None:
    """The weights of a mixture as floats: finite, non-negative, some positive."""
    numbers = checked("weights", weights, positive=False)
    if numbers is not None and not sum(numbers) > 0:
        raise InvalidInput(f"weights: expected at least one positive weight, got {list(numbers)}")
    return numbers
