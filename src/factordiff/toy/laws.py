"""Laws that the enumeration of single paths does not give: of a vote, of one particle among many."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.correctors import Corrected
from factordiff.composition.vote import majority_vote
from factordiff.experts.expert import Expert
from factordiff.sampling.particles import normalised
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.toy.world import CELLS, VALUES, Joint
from factordiff.types import ExpertLogProbs


class Led(Composition):
    """One expert's values in the reveal order of another composition."""

    def __init__(self, leader: Composition, expert: int) -> None:
        self.leader, self.expert = leader, expert

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The expert's distributions, ordered by the leader's doubts."""
        return Composed(log_probs[self.expert], log_doubt=log_doubt(self.leader(log_probs, state).log_probs))


class CellByCell(Composition):
    """A composition that forgets that one expert was to speak for the whole step."""

    def __init__(self, composition: Composition) -> None:
        self.composition = composition

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The same distributions, each cell drawn on its own."""
        return Composed(self.composition(log_probs, state).log_probs)


def law_of_vote(law: Joint, runs: int) -> Joint:
    """The exact law of a cell-wise vote among independent draws: all tuples of outcomes, weighed."""
    outcomes = torch.cartesian_prod(*[torch.arange(VALUES)] * CELLS)
    which = torch.cartesian_prod(*[torch.arange(len(outcomes))] * runs).view(-1, runs).T
    chance = law.flatten()[which].prod(0)
    return tabulated(majority_vote(outcomes[which], VALUES), chance)


def tabulated(x_0: Int[Tensor, "outcome cell"], mass: Float[Tensor, " outcome"]) -> Joint:
    """Mass added up by outcome, one axis per cell."""
    table = torch.zeros(VALUES**CELLS, dtype=torch.float64)
    return table.index_add_(0, number(x_0), mass).view([VALUES] * CELLS)


def number(x_0: Int[Tensor, "*outcome cell"]) -> Int[Tensor, "*outcome"]:
    """The outcomes' places in the table, in lexicographic order."""
    return (x_0 * torch.tensor([VALUES**power for power in reversed(range(CELLS))])).sum(-1)


def drawn_particle_law(
    experts: Sequence[Expert], composition: Corrected, particles: int, runs: int, seed: int
) -> tuple[Joint, float]:
    r"""The law of one particle drawn by weight, averaged over `runs` populations, and its noise.

    Every particle is counted with the probability of being drawn, which varies less than drawing one. The noise
    is the total variation that chance alone would show, $\frac12\sum_x\sqrt{2/\pi}\,s_x/\sqrt{n}$.
    """
    x_t = torch.full((runs, CELLS), VALUES)
    samples = sample(
        experts, composition, x_t, reveal=ByConfidence(CELLS), temperature=1.0, particles=particles, seed=seed
    )
    # Each population gives every outcome a share; their mean is the law, their spread the noise.
    shares = torch.zeros(runs, VALUES**CELLS, dtype=torch.float64)
    shares.scatter_add_(1, number(samples.particles), normalised(samples.log_w))
    noise = shares.std(0, unbiased=False).sum() * math.sqrt(2 / (math.pi * runs)) / 2
    return shares.mean(0).view([VALUES] * CELLS), float(noise)
