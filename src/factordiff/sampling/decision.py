"""What a step decides once the experts have spoken, as it is or compiled into few kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, State
from factordiff.composition.confidence import log_doubt
from factordiff.errors import InvalidInput
from factordiff.sampling.emission import draw_tokens, log_prob_at
from factordiff.sampling.reveal import Belief, Moment, RevealRule
from factordiff.sampling.verified import disagreement
from factordiff.types import Cells, ExpertLogProbs, Tokens


class Decision(NamedTuple):
    """Who says what, which cells are revealed, and their values."""

    composed: Composed
    log_doubt: Float[Tensor, "batch cell"]
    cells: Cells
    tokens: Tokens
    said: Float[Tensor, "expert batch cell"]  # log-probability of each value, by each expert


def decide(
    composition: Composition,
    rule: RevealRule,
    temperature: float,
    log_probs: ExpertLogProbs,
    state: State,
    may_open: Cells,
    here: Moment,
) -> Decision:
    """Compose, choose cells, give every cell a value: a function of tensors alone."""
    composed = composition(log_probs, state)
    doubt = composed.log_doubt if composed.log_doubt is not None else log_doubt(composed.log_probs)
    cells = rule.choose(Belief(composed.log_probs, doubt), may_open, here)
    tokens = draw_tokens(log_probs, composed, temperature, here.draws, here.step)
    return Decision(composed, doubt, cells, tokens, log_prob_at(log_probs, tokens))


class Fused:
    """`decide`, compiled, and held against the plain one at its first call.

    Where it fails or differs by more than rounding it goes on as it is, and `failure` says why.
    """

    def __init__(self) -> None:
        self._decide: Callable[..., Decision] = torch.compile(decide, dynamic=True)
        self._seen = False
        self.failure: str | None = None

    def __call__(self, *given: Any) -> Decision:
        """The same decision, from what `decide` takes."""
        if self._seen:
            return self._decide(*given)
        expected = decide(*given)
        try:
            found = self._decide(*given)
        except Exception as error:
            if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                raise
            self.failure = f"decision: {type(error).__name__}: {error}"
        else:
            # Exponents, because a doubt of nothing at all is -inf.
            ours, theirs = ((one.log_doubt.exp(), one.said.exp()) for one in (found, expected))
            self.failure = disagreement("decision", ours, theirs, expected.said.dtype)
        self._seen = True
        if self.failure is not None:
            self._decide = decide
            return expected
        return found
