r"""Evidence from demonstrations: hide one, condition on the others, and ask how well each expert predicts it.

$e_{m,v} = \sum_k \log p_m(y_{k,v} \mid \text{its input, the other demonstrations})$, all cells of $y_k$ hidden: one
pass for each demonstration. No answer of the query is looked at; a cell counts for the grid that it stands in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.emission import log_prob_at
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition, Inside
from factordiff.experts.expert import Expert
from factordiff.experts.forward import Forward
from factordiff.sampling.given_evidence import Scores
from factordiff.sampling.request import common_vocabulary
from factordiff.state import SamplerState


def hide_one(condition: Condition, number: int) -> tuple[Condition, Int[Tensor, "item cell"]]:
    """The condition in which a demonstration's input is the query and the others are shown; and its output."""
    frames = condition.present.shape[1]
    if not 0 <= number < frames:
        raise InvalidInput(f"number: expected a demonstration in 0 .. {frames - 1}, got {number}")
    others = torch.tensor(
        [frame for frame in range(frames) if frame != number], device=condition.query.device
    )
    inside = condition.inside
    asked = Condition(
        condition.context_inputs[:, number],
        condition.context_inputs[:, others],
        condition.context_outputs[:, others],
        condition.present[:, others],
        None
        if inside is None
        else Inside(
            inside.context_inputs[:, number],
            inside.context_inputs[:, others],
            inside.context_outputs[:, others],
        ),
    )
    return asked, condition.context_outputs[:, number]


@torch.no_grad()
def demonstration_evidence(experts: Sequence[Expert], condition: Condition) -> Scores:
    """What each expert thinks of each item's demonstrations, cell by cell, and the passes that each item took.

    An item with one demonstration or none has no evidence: 0.
    """
    mask = common_vocabulary(experts).mask
    items, cells = condition.query.shape
    device = condition.query.device
    evidence = torch.zeros(len(experts), items, cells, dtype=torch.float64, device=device)
    passes = torch.zeros(items, dtype=torch.int64, device=device)
    for number in range(condition.present.shape[1]):
        asked, output = hide_one(condition, number)
        there = condition.present[:, number] & asked.present.any(-1)
        if not bool(there.any()):
            continue
        hidden = torch.full_like(output, mask)
        state = SamplerState.begin(hidden, mask, len(experts))
        forward = Forward(experts, asked, items)
        log_probs, spent = forward.whole(state, state.masked & there[:, None])
        forward.errors.check()
        evidence = evidence + torch.where(there[:, None], log_prob_at(log_probs, output), 0.0)
        passes = passes + spent
    return evidence, passes
