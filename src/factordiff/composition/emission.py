"""From a composed distribution to values, and the probability with which they are drawn."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed
from factordiff.state import SamplerState
from factordiff.streams import Purpose, categorical
from factordiff.types import CellLogProbs, Cells, ExpertLogProbs, Tokens


def draw_tokens(
    log_probs: ExpertLogProbs, composed: Composed, temperature: float, state: SamplerState
) -> Tokens:
    """A value for every cell: the likeliest at temperature 0, else one drawn.

    Where a composition says that one expert speaks for the whole step (`log_kappa`), that expert is drawn once
    and all values come from it.
    """
    if temperature == 0:
        return composed.log_probs.argmax(-1)
    uniforms = state.draws.cells(Purpose.TOKEN, state.clock, composed.log_probs.shape[1])
    if composed.log_kappa is None:
        return categorical(tempered(composed.log_probs, temperature), uniforms)
    speaker = categorical(composed.log_kappa.T, state.draws.rows(Purpose.EXPERT, state.clock))
    spoken = log_probs[speaker, torch.arange(len(speaker), device=speaker.device)]
    return categorical(tempered(spoken, temperature), uniforms)


def log_drawn(
    log_probs: ExpertLogProbs, composed: Composed, tokens: Tokens, cells: Cells, temperature: float
) -> Float[Tensor, " batch"]:
    r"""The log-probability with which `draw_tokens` gives these values at these cells.

    $\sum_i \log r_i(x_i)$, or, when one expert speaks for all, $\log\sum_m\kappa_m\prod_i p_{m,i}(x_i)$.
    """
    if composed.log_kappa is None:
        return log_prob_of_cells(tempered(composed.log_probs, temperature), tokens, cells)
    each = torch.stack([log_prob_of_cells(tempered(said, temperature), tokens, cells) for said in log_probs])
    return (composed.log_kappa + each).logsumexp(0)


def tempered(log_probs: CellLogProbs, temperature: float) -> CellLogProbs:
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
