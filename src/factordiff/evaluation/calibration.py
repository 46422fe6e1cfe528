"""Confidence against correctness: does an expert that is surer err less? And how an occupancy expert splits colors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.composition.confidence import margin
from factordiff.composition.views import split
from factordiff.experts.expert import Expert
from factordiff.streams import Purpose, uniform

BINS = 10
TIMES = (0.25, 0.5, 0.75, 1.0)  # the share of hidden cells
QUANTILES = (0.1, 0.5, 0.9)


@torch.no_grad()
def confidence_curve(
    expert: Expert, queries: EvaluationSet, count: int, batch: int = 600, seed: int = 0
) -> dict[str, Any]:
    r"""Margins in ten bins against the share of right values, at hidden cells of half-shown true answers.

    Background and foreground cells are counted apart, since specialists know only one of the two questions. At
    foreground cells also the largest color's share of the foreground, $\max_c p(c) / p_{fg}$. And the log-probability
    of the right value: where it is very low, the expert forbids what is so, and a product lets it.
    """
    device = queries.queries.device
    shape = (2, BINS)
    cells, right, sure = (torch.zeros(shape, dtype=torch.float64, device=device) for _ in range(3))
    shares: list[Tensor] = []
    truths: tuple[list[Tensor], list[Tensor]] = ([], [])
    for first in range(0, min(count, len(queries)), batch):
        index = torch.arange(first, min(first + batch, count, len(queries)), device=device)
        x_0 = queries.x_0[index]
        encoded = expert.encode(queries.condition(index))
        cell = torch.arange(x_0.shape[1], device=device)
        for number, time in enumerate(TIMES):
            hidden = uniform(seed, Purpose.CORRUPT, number, index[:, None], cell[None, :]) < time
            log_probs = expert.log_probs(torch.where(hidden, expert.vocabulary.mask, x_0), encoded).double()
            sureness = margin(log_probs)
            place = (x_0 > 0).long() * BINS + (sureness * BINS).long().clamp(0, BINS - 1)
            place, correct = place[hidden], (log_probs.argmax(-1) == x_0)[hidden].double()
            cells += torch.bincount(place, minlength=2 * BINS).double().view(shape)
            right += torch.bincount(place, correct, minlength=2 * BINS).view(shape)
            sure += torch.bincount(place, sureness[hidden], minlength=2 * BINS).view(shape)
            shares.append(split(log_probs)[2].exp().amax(-1)[hidden & (x_0 > 0)])
            of_truth = log_probs.gather(-1, x_0[..., None])[..., 0]
            for side, values in enumerate(truths):
                values.append(of_truth[hidden & ((x_0 > 0) == bool(side))])
    return {
        "cells": cells.tolist(),  # background, foreground
        "right": right.tolist(),
        "margin": sure.tolist(),
        "largest_color_share": _quantiles(shares),
        "truth": [_quantiles(values) for values in truths],
    }


def _quantiles(parts: list[Tensor]) -> list[float]:
    """The tenth, the half and the nine tenths of the values, of the first million."""
    values = torch.cat(parts)[:1_000_000]
    at = torch.tensor(QUANTILES, dtype=values.dtype, device=values.device)
    return torch.quantile(values, at).tolist() if len(values) else []
