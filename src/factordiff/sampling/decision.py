"""What a step decides once the experts have spoken."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, State
from factordiff.composition.confidence import log_doubt
from factordiff.sampling.emission import draw_tokens, log_prob_at
from factordiff.sampling.reveal import Belief, Moment, RevealRule
from factordiff.types import Cells, ExpertLogProbs, LogDensities, Tokens


class Decision(NamedTuple):
    """Who says what, which cells are revealed, and their values."""

    composed: Composed
    log_doubt: Float[Tensor, "batch cell"]
    cells: Cells
    tokens: Tokens
    said: Float[Tensor, "expert batch cell"]  # log-probability of each value, by each expert

    def filled(self, x_t: Tokens) -> Tokens:
        """The state with the revealed cells filled in."""
        return torch.where(self.cells, self.tokens, x_t)

    @property
    def log_said(self) -> LogDensities:
        r"""$\sum \log p_m(x_i)$ of what is revealed, by each expert."""
        return torch.where(self.cells, self.said, 0.0).sum(-1)


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
