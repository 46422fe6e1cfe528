"""The exact law of a composition on a tiny world: every path enumerated, nothing drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as all_tuples

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.emission import log_drawn
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.forward import refuse, sum_error
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.request import check_tokens, common_vocabulary
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule, Wrapped, at_next_reveal, ticked
from factordiff.sampling.rows import joined_rows, some_rows
from factordiff.sampling.step import commit, propose
from factordiff.state import SamplerState
from factordiff.tensors import Numbers, as_tensor
from factordiff.types import Cells, ExpertLogProbs, Tokens

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


def total_variation(one: Float[Tensor, ...] | Numbers, other: Float[Tensor, ...] | Numbers) -> float:
    r"""$\frac12\sum_x |p(x) - q(x)|$: 0 for equal laws, 1 for disjoint ones."""
    p, q = _probabilities("one", one), _probabilities("other", other)
    if p.shape != q.shape:
        raise InvalidInput(f"other: expected the shape of one, {tuple(p.shape)}, got {tuple(q.shape)}")
    return float((p - q).abs().sum() / 2)


def _probabilities(name: str, given: Float[Tensor, ...] | Numbers) -> Float[Tensor, ...]:
    table = as_tensor(name, given)
    if table.is_complex() or table.isnan().any():
        what = table.dtype if table.is_complex() else "NaN"
        raise InvalidInput(f"{name}: expected a table of probabilities, got {what} in it")
    return table if table.is_floating_point() else table.double()


@torch.no_grad()
def exact_law(
    experts: Sequence[Expert],
    composition: Composition,
    cells: int,
    *,
    reveal: RevealRule | None = None,
    temperature: float = 1.0,
    start: Int[Tensor, " cell"] | Numbers | None = None,
) -> Law:
    """The law of `sample` with one particle, for experts that need no condition, from `start` (default: all masked).

    The reveal rule must neither be random nor take cells back. With one cell per step each outcome has exactly one
    path.
    """
    vocabulary = common_vocabulary(experts)
    rule = reveal if reveal is not None else ByConfidence(max(cells, 1))
    _check_rule(rule)
    if not 0 < temperature < float("inf"):
        raise InvalidInput(f"temperature: expected a finite positive number, got {temperature}")
    if vocabulary.size**cells > LARGEST_LAW:
        raise InvalidInput(f"cells: {vocabulary.size}^{cells} outcomes are too many to enumerate")
    start = None if start is None else as_tensor("start", start)
    if start is not None and (start.shape != (cells,) or start.dtype != torch.int64):
        raise InvalidInput(
            f"start: expected {cells} tokens, one per cell, got shape {tuple(start.shape)} of {start.dtype}"
        )
    beta = composition.target(len(experts))
    x_t = torch.full((1, cells), vocabulary.mask) if start is None else start[None]
    check_tokens(x_t, experts)
    state = SamplerState.begin(x_t, vocabulary.mask, len(experts))
    log_prob = torch.zeros(1, dtype=torch.float64)
    told = [expert.encode(None) for expert in experts]

    def forward(state: SamplerState, candidates: Cells) -> tuple[ExpertLogProbs, Int[Tensor, " batch"]]:
        said = [expert.log_probs(state.x_t, one).double() for expert, one in zip(experts, told, strict=True)]
        log_probs = torch.stack(said)
        refuse(sum_error(log_probs, state.masked))
        return log_probs, torch.zeros_like(state.item)

    while state.masked.any():
        proposal = propose(at_next_reveal(state, rule), forward, composition, rule)
        # Every row goes on as one row for every way of filling its chosen cells.
        branches, chances = [], []
        for tokens, real in _fillings(proposal.cells, vocabulary.size):
            drawn = log_drawn(proposal.log_probs, proposal.composed, tokens, proposal.cells, temperature)
            possible = (real & (log_prob + drawn > -torch.inf)).nonzero().squeeze(-1)
            branches.append(some_rows(ticked(commit(proposal, tokens, beta, temperature)), possible))
            chances.append((log_prob + drawn)[possible])
        state, log_prob = joined_rows(branches), torch.cat(chances)
    return Law(state.x_t, log_prob, state.log_w, vocabulary.size)


def _check_rule(rule: RevealRule) -> None:
    inside = rule
    while isinstance(inside, Wrapped):
        inside = inside.rule
    if isinstance(inside, Ancestral) or (isinstance(inside, ByBlock) and inside.order == "random"):
        raise InvalidInput(f"reveal: expected a rule that is not random, got {rule!r}")
    if rule.repairs:
        raise InvalidInput(f"reveal: expected a rule that takes no cell back, got {rule!r}")


def _fillings(chosen: Cells, values: int) -> Iterator[tuple[Tokens, Bool[Tensor, " batch"]]]:
    """Every way of filling the chosen cells; a row with fewer of them than others takes part in fewer, each once."""
    most = int(chosen.sum(-1).max())
    place = (chosen.cumsum(-1) - 1).clamp(min=0)
    beyond = torch.arange(most)[None, :] >= chosen.sum(-1, keepdim=True)
    for filling in all_tuples(range(values), repeat=most):
        values_of = torch.tensor(filling)
        yield values_of[place], ~(beyond & (values_of > 0)).any(-1)
