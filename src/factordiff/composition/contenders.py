r"""Who can be the surest about a cell at all: of large vocabularies, only their log-doubts are worked out.

The margin $p^{(1)} - p^{(2)}$ of a distribution needs no sum over the values. It is a confidence only as far as the
probabilities add up to 1, and it rounds where an expert is sure; so it decides nothing between experts that are close
to each other. But an expert whose margin is well below another's is not the surest, whatever the sums are. What is
left is decided by log-doubts, so that who speaks is, bit for bit, who would speak if all of them were worked out.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.confidence import TopTwo, log_doubt, log_doubt_of_many, rows_at_once
from factordiff.experts.forward import SUM_TOLERANCE
from factordiff.types import LARGE, ExpertLogProbs

# Where a shape may depend on numbers at no cost; on a GPU a step would wait for the passes to end.
NOTHING_WAITS = ("cpu",)
# Sums of e^-t to e^t are taken for 1: a margin may be off by such a factor, and the one it is compared with by another.
SLACK = math.exp(-2 * SUM_TOLERANCE)


def contending_log_doubts(log_probs: ExpertLogProbs) -> Float[Tensor, "expert batch cell"]:
    r"""The log-doubts of all experts; of a large vocabulary on a CPU, $\infty$ for who cannot be a cell's surest."""
    *shape, values = log_probs.shape
    if values <= LARGE or log_probs.device.type not in NOTHING_WAITS or len(log_probs) == 1:
        return log_doubt(log_probs)
    rows = log_probs.reshape(-1, values)
    top = TopTwo.of(rows)
    margin = (top.first.double().exp() - top.second.double().exp()).view(shape)
    # Turned around, so that a margin that is no number, and its cell with it, are left to log-doubts.
    contends = (~(margin < margin.amax(0) * SLACK)).flatten().nonzero().squeeze(-1)
    found = torch.full((len(rows),), torch.inf, dtype=torch.float64, device=rows.device)
    for some in contends.split(rows_at_once(rows)):
        found[some] = log_doubt_of_many(rows.index_select(0, some), top.rows(some))
    return found.view(shape)
