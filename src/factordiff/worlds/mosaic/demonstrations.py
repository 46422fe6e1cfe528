r"""Evidence from demonstrations: hide one, condition on the others, and ask how well each expert predicts it.

$e_{m,v} = \sum_k \log p_m(y_{k,v} \mid \text{its input, the other demonstrations})$, all cells of $y_k$ hidden: one
pass for each demonstration. No answer of the query is looked at; a cell counts for the grid that it stands in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from factordiff.composition.emission import log_prob_at
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert
from factordiff.experts.forward import Forward
from factordiff.sampling.given_evidence import Scores
from factordiff.sampling.request import common_vocabulary
from factordiff.state import SamplerState


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
    for asked, output, there in condition.leave_one_out():
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
