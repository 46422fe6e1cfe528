"""One step of the loop, for every row at once: a pure function from state to state.

Exact laws of tiny worlds are made of the same halves: `propose`, up to the cells, and `commit`, from their values on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.emission import draw_tokens, log_drawn, log_prob_at
from factordiff.sampling.adaptive import repaired
from factordiff.sampling.particles import RESAMPLING, log_target, resampled
from factordiff.sampling.reveal import Posterior, RevealRule, at_next_reveal
from factordiff.state import SamplerState
from factordiff.types import Cells, ExpertLogProbs, Tokens

# What every expert says at the masked cells of every row that has candidates, and how many passes each row took.
Forward = Callable[[SamplerState, Cells], tuple[ExpertLogProbs, Int[Tensor, " batch"]]]


@dataclass(frozen=True)
class Proposal:
    """What is known before values are drawn: who says what, and which cells will be revealed."""

    state: SamplerState
    candidates: Cells
    log_probs: ExpertLogProbs
    passes: Int[Tensor, " batch"]
    composed: Composed
    log_doubt: Float[Tensor, "batch cell"]
    cells: Cells


@dataclass(frozen=True)
class StepInfo:
    """What happened in a step: traces, counts and pictures are made of these."""

    proposal: Proposal
    revealed: SamplerState  # before resampling
    ess: Float[Tensor, " item"] | None = None
    ancestors: Int[Tensor, "item particle"] | None = None


def step(
    state: SamplerState,
    forward: Forward,
    composition: Composition,
    rule: RevealRule,
    *,
    temperature: float = 0.0,
    resampling: float = RESAMPLING,
) -> tuple[SamplerState, StepInfo]:
    """Candidates, ask, compose, choose cells; draw; weight; resample. Paper: appendix "Diffusion Sampling"."""
    proposal = propose(at_next_reveal(state, rule), forward, composition, rule)
    tokens = draw_tokens(proposal.log_probs, proposal.composed, temperature, proposal.state)
    beta = composition.target(len(proposal.log_probs))
    revealed = commit(proposal, tokens, beta, temperature)
    after, ess, ancestors = (revealed, None, None) if beta is None else resampled(revealed, resampling)
    if rule.repairs:
        after = repaired(after, rule)
    return ticked(after), StepInfo(proposal, revealed, ess, ancestors)


def propose(state: SamplerState, forward: Forward, composition: Composition, rule: RevealRule) -> Proposal:
    """Ask the experts, compose what they say, and choose cells, before any value is drawn."""
    candidates = rule.candidates(state)
    log_probs, passes = forward(state, candidates)
    composed = composition(log_probs, state)
    doubt = composed.log_doubt if composed.log_doubt is not None else log_doubt(composed.log_probs)
    cells = rule.choose(Posterior(composed.log_probs, doubt), candidates, state)
    return Proposal(state, candidates, log_probs, passes, composed, doubt, cells)


def commit(
    proposal: Proposal, tokens: Tokens, beta: Float[Tensor, " expert"] | None, temperature: float
) -> SamplerState:
    r"""Fill the chosen cells, note what each expert thinks of their values, and weight.

    $\log w \mathrel{+}= \sum_m \beta_m \log p_m(x_U) - \log r(x_U)$ with r what the values were drawn from.
    """
    state, cells = proposal.state, proposal.cells
    said = log_prob_at(proposal.log_probs, tokens)
    log_w, doubts = state.log_w, state.log_doubt
    if beta is not None:
        drawn = log_drawn(proposal.log_probs, proposal.composed, tokens, cells, temperature)
        gained = log_target(torch.where(cells, said, 0.0).sum(-1), beta.to(said.device)) - drawn
        log_w = torch.where(cells.any(-1), log_w + gained, log_w)
    return replace(
        state,
        x_t=torch.where(cells, tokens, state.x_t),
        log_density=torch.where(cells, said, state.log_density),
        log_w=log_w,
        log_doubt=None if doubts is None else torch.where(cells, proposal.log_doubt, doubts),
    )


def ticked(state: SamplerState) -> SamplerState:
    """The clock of every unfinished item moves on."""
    unfinished = state.masked.view(-1, state.particles * state.x_t.shape[1]).any(-1)
    return replace(state, clock=state.clock + unfinished.repeat_interleave(state.particles).to(torch.int64))
