"""What a router looks at: numbers per expert and cell, from what the experts say and how far the row is.

Nothing here knows what a value means. The same numbers are worked out for every expert, and what concerns the others
is averaged over them, so that experts may be exchanged and be any number.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.confidence import log_doubt
from factordiff.state import SamplerState
from factordiff.types import Cells, ExpertCells, ExpertLogProbs

LEAST_LOG = -20.0  # probabilities below e^-20 are told apart by nobody
SCALE = 10.0  # logarithms are divided by it, to be of the size of the others
NAMES = (
    "margin",
    "log-doubt",
    "entropy",
    "top probability",
    "what it gives to the others' first choices",
    "what the others give to its own",
    "agreement",
    "share of masked cells",
    "visible cells near",
    "its log-doubt near",
    "agreement near",
)
EVIDENCE = "how well it predicted what is visible near"
RADIUS = 2  # how far "near" reaches

Features = Float[Tensor, "expert batch cell feature"]


def feature_names(evidence: bool) -> tuple[str, ...]:
    """The features in order."""
    return (*NAMES, EVIDENCE) if evidence else NAMES


def features(
    log_probs: ExpertLogProbs, state: SamplerState, layout: tuple[int, int] | None, evidence: bool = False
) -> Features:
    """The features of every expert at every cell, in float32; those of revealed cells mean nothing.

    `layout` is the height and width in which cells have neighbours (None: a line).
    """
    experts, _, _, values = log_probs.shape
    masked, log_p = state.masked, log_probs.float().clamp(min=LEAST_LOG)
    doubt = log_doubt(log_probs).float().clamp(min=3 * LEAST_LOG)
    p = log_p.exp()
    top = log_p.max(-1)
    # [m, batch, cell, k]: what expert m gives to the first choice of expert k
    given = log_p.gather(-1, top.indices.permute(1, 2, 0).expand(experts, -1, -1, -1))
    own = given.diagonal(dim1=0, dim2=3).permute(2, 0, 1)
    others = max(experts - 1, 1)
    to_others = (given.sum(-1) - own) / others
    from_others = (given.sum(0).permute(2, 0, 1) - own) / others
    same = top.indices.unsqueeze(0) == top.indices.unsqueeze(1)
    agreement = (same.float().sum(0) - 1.0) / others
    row = masked.float().mean(-1)[None, :, None].expand_as(doubt)
    visible = around((~masked).float()[None], torch.ones_like(masked), layout).expand_as(doubt)
    parts = [
        -torch.expm1(doubt),
        doubt / SCALE,
        (-(p * log_p).sum(-1) / math.log(max(values, 2))),
        top.values.exp(),
        to_others / SCALE,
        from_others / SCALE,
        agreement,
        row,
        visible,
        around(doubt, masked, layout) / SCALE,
        around(agreement, masked, layout),
    ]
    if evidence:
        said = state.log_density.float().clamp(min=LEAST_LOG)
        said = said - said.mean(0)
        known = (state.log_density != 0).any(0)
        reach = (2 * RADIUS + 1) ** (1 if layout is None else 2)
        parts.append((around(said, known, layout) * reach / SCALE).clamp(-3.0, 3.0))
    return torch.stack(parts, -1)


def around(numbers: ExpertCells, counted: Cells, layout: tuple[int, int] | None) -> ExpertCells:
    """The mean over the window of a cell: the sum over its counted cells, divided by the window's size."""
    experts, batch, cells = numbers.shape
    height, width = (1, cells) if layout is None else layout
    plane = torch.where(counted, numbers, 0.0).reshape(experts * batch, 1, height, width)
    high = 0 if height == 1 else RADIUS
    kernel = (2 * high + 1, 2 * RADIUS + 1)
    mean = F.avg_pool2d(plane, kernel, stride=1, padding=(high, RADIUS), count_include_pad=True)
    return mean.view(experts, batch, cells)
