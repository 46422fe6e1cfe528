"""One step of the loop, a pure function of the state; exact laws are made of its halves, `propose` and `commit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.chunks import Known, compose_in_chunks, fill_in_chunks
from factordiff.composition.composition import Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.emission import draw_tokens, log_drawn, log_prob_at
from factordiff.composition.proposal import Proposal
from factordiff.experts.cell_outputs import CellOutputs
from factordiff.sampling.own_parts import check_chosen, check_composed
from factordiff.sampling.particles import RESAMPLING, log_target, resampled
from factordiff.sampling.reveal import Posterior, RevealRule, at_next_reveal, ticked
from factordiff.state import SamplerState
from factordiff.types import LARGE, Cells, ExpertLogProbs, Tokens

# What every expert says at the cells asked about (or at all), and how many passes each row took.
Forward = Callable[[SamplerState, Cells], tuple[ExpertLogProbs | CellOutputs, Int[Tensor, " batch"]]]
OURS = "factordiff."  # what others wrote is checked
Beta = Float[Tensor, " expert"] | None


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
    beta = composition.target(len(proposal.log_probs))
    draw = partial(commit, tokens=None, beta=beta, temperature=temperature)
    large = isinstance(proposal.log_probs, CellOutputs)
    revealed = fill_in_chunks(proposal, composition, draw) if large else draw(proposal)
    after, ess, ancestors = (revealed, None, None) if beta is None else resampled(revealed, resampling)
    if rule.repairs:
        after, ancestors = rule.revised(after, proposal.log_doubt)
    return ticked(after), StepInfo(proposal, revealed, ess, ancestors)


def propose(state: SamplerState, forward: Forward, composition: Composition, rule: RevealRule) -> Proposal:
    """Ask the experts, compose what they say, and choose cells, before any value is drawn."""
    candidates = rule.candidates(state)
    large = state.mask > LARGE
    wanted = composition.asks(candidates, state) if large else candidates
    at_most = rule.at_most(candidates, state) if large else None  # now: later it would wait for the passes
    log_probs, passes = forward(state, wanted)
    known, kept = Known(), None
    if isinstance(log_probs, CellOutputs):
        log_probs, composed, known, kept = compose_in_chunks(log_probs, composition, state, rule.reads)
    else:
        composed = composition(log_probs, state)
        if not type(composition).__module__.startswith(OURS):
            check_composed(composition, composed, log_probs, candidates)
    doubt = composed.log_doubt if composed.log_doubt is not None else log_doubt(composed.log_probs)
    cells = rule.choose(Posterior(composed.log_probs, doubt, known), candidates, state)
    if not type(rule).__module__.startswith(OURS):
        check_chosen(rule, cells, candidates)
    return Proposal(state, candidates, log_probs, passes, composed, doubt, cells, at_most, kept)


def commit(proposal: Proposal, tokens: Tokens | None, beta: Beta, temperature: float) -> SamplerState:
    r"""Fill the chosen cells with these values, or draw them; note what each expert thinks of them, and weight.

    $\log w \mathrel{+}= \sum_m \beta_m \log p_m(x_U) - \log r(x_U)$ with r what the values were drawn from.
    """
    state, cells, log_probs = proposal.state, proposal.cells, proposal.log_probs
    tokens = draw_tokens(log_probs, proposal.composed, temperature, state) if tokens is None else tokens
    said = log_prob_at(log_probs, tokens)
    log_w, doubts = state.log_w, state.log_doubt
    if beta is not None:
        drawn = log_drawn(log_probs, proposal.composed, tokens, cells, temperature)
        gained = log_target(torch.where(cells, said, 0.0).sum(-1), beta.to(said.device)) - drawn
        log_w = torch.where(cells.any(-1), log_w + gained, log_w)
    return replace(
        state,
        x_t=torch.where(cells, tokens, state.x_t),
        log_density=torch.where(cells, said, state.log_density),
        log_w=log_w,
        log_doubt=None if doubts is None else torch.where(cells, proposal.log_doubt, doubts),
    )
