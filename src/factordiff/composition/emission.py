"""From a composed distribution to values, and the probability with which they are drawn."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed
from factordiff.composition.routing import routed
from factordiff.state import SamplerState
from factordiff.streams import Purpose, categorical
from factordiff.types import Cells, ExpertLogProbs, RoutingMap, Tokens


def draw_tokens(
    log_probs: ExpertLogProbs, composed: Composed, temperature: float, state: SamplerState
) -> Tokens:
    """A value for every cell: the likeliest at temperature 0, else one drawn.

    Where a composition says that one expert speaks for several cells (`log_kappa`), that expert is drawn once for
    the step and all their values come from it.
    """
    if temperature == 0:
        return composed.log_probs.argmax(-1)
    uniforms = state.draws.cells(Purpose.TOKEN, state.clock, composed.log_probs.shape[1])
    if composed.log_kappa is None:
        return categorical(tempered(composed.log_probs, temperature), uniforms)
    spoken = routed(log_probs, drawn_speakers(composed, state))
    return categorical(tempered(spoken, temperature), uniforms)


def drawn_speakers(composed: Composed, state: SamplerState) -> RoutingMap:
    """The expert that speaks for each cell in this step: of the row, of each label of `owners`, or its own."""
    assert composed.log_kappa is not None
    if composed.owners is None and composed.log_kappa.dim() == 3:
        uniforms = state.draws.cells(Purpose.EXPERT, state.clock, state.x_t.shape[1])
        return categorical(composed.log_kappa.permute(1, 2, 0), uniforms)
    if composed.owners is None:
        speaker = categorical(composed.log_kappa.T, state.draws.rows(Purpose.EXPERT, state.clock))
        return speaker[:, None].expand_as(state.x_t)
    uniforms = state.draws.factors(Purpose.EXPERT, state.clock, composed.owners)
    return categorical(composed.log_kappa.permute(1, 2, 0), uniforms)


def log_drawn(
    log_probs: ExpertLogProbs, composed: Composed, tokens: Tokens, cells: Cells, temperature: float
) -> Float[Tensor, " batch"]:
    r"""The log-probability with which `draw_tokens` gives these values at these cells.

    $\sum_i \log r_i(x_i)$, or, when one expert speaks for all cells of a factor f (or of the row),
    $\sum_f \log\sum_m\kappa_{m,f}\prod_{i \in f} p_{m,i}(x_i)$; a cell with a speaker of its own is such a factor.
    """
    if composed.log_kappa is None:
        return log_prob_of_cells(tempered(composed.log_probs, temperature), tokens, cells)
    each = torch.where(cells, log_prob_at(tempered(log_probs, temperature), tokens), 0.0)
    if composed.owners is None and composed.log_kappa.dim() == 3:
        return torch.where(cells, (composed.log_kappa + each).logsumexp(0), 0.0).sum(-1)
    if composed.owners is None:
        return (composed.log_kappa + each.sum(-1)).logsumexp(0)
    labels, nothing = composed.owners, torch.zeros_like(each)
    log_kappa = nothing.scatter(-1, labels.expand_as(each), composed.log_kappa)  # from here on, by label
    each = nothing.scatter_add(-1, labels.expand_as(each), each)
    opened = torch.zeros_like(labels).scatter_add(-1, labels, cells.to(labels.dtype)) > 0
    return torch.where(opened, (log_kappa + each).logsumexp(0), 0.0).sum(-1)


def tempered(
    log_probs: Float[Tensor, "*expert batch cell value"], temperature: float
) -> Float[Tensor, "*expert batch cell value"]:
    r"""$r^{1/\tau}$, renormalised: what is drawn from at sampling temperature $\tau > 0$."""
    return log_probs if temperature == 1.0 else torch.log_softmax(log_probs / temperature, dim=-1)


def log_prob_of_cells(
    log_probs: Float[Tensor, "*expert batch cell value"], tokens: Tokens, cells: Cells
) -> Float[Tensor, "*expert batch"]:
    r"""$\sum_{i \in \text{cells}} \log p_i(x_i)$, for each expert if there are several."""
    return torch.where(cells, log_prob_at(log_probs, tokens), 0.0).sum(-1)


def log_prob_at(
    log_probs: Float[Tensor, "*expert batch cell value"], tokens: Tokens
) -> Float[Tensor, "*expert batch cell"]:
    r"""$\log p_i(x_i)$ at every cell, in float64."""
    index = tokens.clamp(max=log_probs.shape[-1] - 1).expand(log_probs.shape[:-1]).unsqueeze(-1)
    return log_probs.gather(-1, index).squeeze(-1).double()
