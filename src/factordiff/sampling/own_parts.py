"""What compositions and reveal rules of one's own return, looked at before it is used.

On a GPU only its shape is: to look at numbers would wait for the device in every step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.errors import InvalidInput
from factordiff.sampling.reveal import RevealRule
from factordiff.types import Cells, ExpertLogProbs


def check_composed(
    composition: Composition, composed: Any, log_probs: ExpertLogProbs, candidates: Cells
) -> None:
    """Refuse what is no distribution at each candidate."""
    name = type(composition).__name__
    if not isinstance(composed, Composed):
        raise InvalidInput(
            f"composition: {name} returned a {type(composed).__name__}, expected Composed(log_probs)"
        )
    said, shape = composed.log_probs, tuple(log_probs.shape[1:])
    if tuple(said.shape) != shape:
        raise InvalidInput(
            f"composition: {name} returned log-probabilities of shape {tuple(said.shape)}, expected {shape} "
            "(batch, cell, value)"
        )
    if said.device.type != "cpu":
        return
    off = torch.where(candidates, said.logsumexp(-1).abs(), 0.0)
    if not (off <= 1e-3).all():
        raise InvalidInput(
            f"composition: the log-probabilities of {name} do not sum to one at some cell (off by a factor of "
            f"e^{float(off.max()):.3g}); end with .log_softmax(-1)"
        )


def check_chosen(rule: RevealRule, chosen: Any, candidates: Cells) -> None:
    """Refuse what is no choice among the candidates; without one in some row the loop would never end."""
    name = type(rule).__name__
    given = f"{chosen.dtype} of shape {tuple(chosen.shape)}" if isinstance(chosen, Tensor) else f"{chosen!r}"
    if not isinstance(chosen, Tensor) or chosen.shape != candidates.shape or chosen.dtype != torch.bool:
        raise InvalidInput(
            f"reveal: {name}.choose returned {given}, expected true and false of shape "
            f"{tuple(candidates.shape)} (batch, cell)"
        )
    if candidates.device.type != "cpu":
        return
    if (chosen & ~candidates).any():
        raise InvalidInput(f"reveal: {name}.choose chose cells that are none of its candidates")
    if (candidates.any(-1) & ~chosen.any(-1)).any():
        raise InvalidInput(f"reveal: {name}.choose chose none of a row's candidates, expected at least one")
