"""The exact law of a composition on a tiny world: every path enumerated, nothing drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as all_tuples

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composition, State, check_log_probs
from factordiff.composition.confidence import log_doubt
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.sampling.draws import Draws
from factordiff.sampling.emission import log_drawn, log_prob_of_cells
from factordiff.sampling.particles import log_target
from factordiff.sampling.request import check_tokens, common_vocabulary
from factordiff.sampling.reveal import Ancestral, Belief, ByConfidence, Moment, RevealRule

LARGEST_LAW = 1_000_000


@dataclass(frozen=True)
class Law:
    """Every outcome with the probability that the sampler draws it and the weight it then carries."""

    x_0: Int[Tensor, "outcome cell"]
    log_prob: Float[Tensor, " outcome"]
    log_w: Float[Tensor, " outcome"]  # zero unless the composition has a target
    values: int

    def __repr__(self) -> str:
        outcomes, cells = self.x_0.shape
        return f"Law({outcomes} outcomes of {cells} cells with {self.values} values)"

    def distribution(self, weighted: bool = False) -> Float[Tensor, ...]:
        """Probabilities as a table with one axis per cell; `weighted` and normalised by the weights, if asked."""
        cells = self.x_0.shape[1]
        strides = torch.tensor([self.values**power for power in reversed(range(cells))])
        mass = (self.log_prob + self.log_w).exp() if weighted else self.log_prob.exp()
        table = torch.zeros(self.values**cells, dtype=torch.float64)
        table.index_add_(0, (self.x_0 * strides).sum(-1), mass)
        if weighted:
            table = table / table.sum()
        return table.view([self.values] * cells)


def total_variation(one: Float[Tensor, ...], other: Float[Tensor, ...]) -> float:
    r"""$\frac12\sum_x |p(x) - q(x)|$: 0 for equal laws, 1 for disjoint ones."""
    return float((one - other).abs().sum() / 2)


@torch.no_grad()
def exact_law(
    experts: Sequence[Expert],
    composition: Composition,
    cells: int,
    *,
    reveal: RevealRule | None = None,
    temperature: float = 1.0,
) -> Law:
    """The law of `sample` with one particle, for experts that need no condition.

    The reveal rule must not be random. With one cell per step and no randomness but the values, each outcome
    has exactly one path.
    """
    vocabulary = common_vocabulary(experts)
    rule = reveal if reveal is not None else ByConfidence(max(cells, 1))
    if isinstance(rule, Ancestral):
        raise InvalidInput("reveal: expected a rule that is not random, got Ancestral")
    if not 0 < temperature < float("inf"):
        raise InvalidInput(f"temperature: expected a finite positive number, got {temperature}")
    if vocabulary.size**cells > LARGEST_LAW:
        raise InvalidInput(f"cells: {vocabulary.size}^{cells} outcomes are too many to enumerate")
    beta = composition.target(len(experts))
    x_t = torch.full((1, cells), vocabulary.mask)
    check_tokens(x_t, vocabulary)
    log_prob = torch.zeros(1, dtype=torch.float64)
    log_w = torch.zeros(1, dtype=torch.float64)
    log_density = torch.zeros(len(experts), 1, dtype=torch.float64)
    clock = 0

    while (x_t == vocabulary.mask).any():
        rows = torch.arange(len(x_t))
        zeros = torch.zeros_like(rows)
        masked = x_t == vocabulary.mask
        moment = Moment(masked, zeros + clock, zeros + cells, Draws(0, zeros, zeros))
        clock += 1
        candidates = rule.candidates(moment)
        if not candidates.any():
            continue
        log_probs = torch.stack([expert.log_probs(x_t, expert.encode(None)) for expert in experts]).double()
        check_log_probs(log_probs, masked)
        composed = composition(log_probs, State(x_t, masked, log_density, rows))
        doubt = composed.log_doubt if composed.log_doubt is not None else log_doubt(composed.log_probs)
        chosen = rule.choose(Belief(composed.log_probs, doubt), candidates, moment)

        # Every row goes on as one row for every way of filling its chosen cells.
        branches = []
        for filling in all_tuples(range(vocabulary.size), repeat=int(chosen.sum(-1).max())):
            place = (chosen.cumsum(-1) - 1).clamp(min=0)
            tokens = torch.tensor(filling)[place]
            unused = torch.tensor(filling)[None, :].expand(len(x_t), -1)
            beyond = torch.arange(len(filling))[None, :] >= chosen.sum(-1, keepdim=True)
            real = ~(beyond & (unused > 0)).any(-1)  # rows with fewer chosen cells appear once
            drawn = log_drawn(log_probs, composed, tokens, chosen, temperature)
            said = log_prob_of_cells(log_probs, tokens, chosen)
            gain = torch.zeros_like(drawn) if beta is None else log_target(said, beta) - drawn
            branches.append(
                (torch.where(chosen, tokens, x_t), log_prob + drawn, log_w + gain, log_density + said, real)
            )
        keep = torch.cat([branch[4] & (branch[1] > -torch.inf) for branch in branches])
        x_t = torch.cat([branch[0] for branch in branches])[keep]
        log_prob = torch.cat([branch[1] for branch in branches])[keep]
        log_w = torch.cat([branch[2] for branch in branches])[keep]
        log_density = torch.cat([branch[3] for branch in branches], dim=1)[:, keep]
    return Law(x_t, log_prob, log_w, vocabulary.size)
