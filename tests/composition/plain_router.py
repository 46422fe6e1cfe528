"""Routers written down in float64, cell by cell, for cells in a line and without evidence: what `router.py` does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from factordiff.composition.router import BLOCKS, DILATIONS, FEW_VALUES, Router
from factordiff.composition.router_features import LEAST_LOG, RADIUS, SCALE
from factordiff.networks.parameters import Layout

Numbers = np.ndarray[Any, Any]


def gelu(numbers: Numbers) -> Numbers:
    x = torch.from_numpy(np.asarray(numbers, dtype=np.float64))
    return (0.5 * x * (1 + torch.erf(x / 2**0.5))).numpy()


def near(numbers: Numbers, cell: int) -> float:
    """The sum over the window of a cell, divided by the window's size."""
    return float(numbers[max(cell - RADIUS, 0) : cell + RADIUS + 1].sum() / (2 * RADIUS + 1))


def plain_features(log_p: Numbers, masked: Numbers) -> Numbers:
    """The eleven numbers of every expert at every cell of one row."""
    experts, cells, values = log_p.shape
    log_p = np.maximum(log_p, LEAST_LOG)
    p = np.exp(log_p)
    top = np.sort(p, -1)
    doubt = np.log(p.sum(-1) - top[..., -1] + top[..., -2]) - np.log(p.sum(-1))
    choice = p.argmax(-1)
    found = np.zeros((experts, cells, 11))
    agreed = np.array(
        [
            [np.mean([choice[k, c] == choice[m, c] for k in range(experts) if k != m]) for c in range(cells)]
            for m in range(experts)
        ]
    )
    for m, c in np.ndindex(experts, cells):
        others = [k for k in range(experts) if k != m]
        found[m, c] = [
            1 - np.exp(doubt[m, c]),
            doubt[m, c] / SCALE,
            -(p[m, c] * log_p[m, c]).sum() / np.log(values),
            top[m, c, -1],
            np.mean([log_p[m, c, choice[k, c]] for k in others]) / SCALE,
            np.mean([log_p[k, c, choice[m, c]] for k in others]) / SCALE,
            agreed[m, c],
            masked.mean(),
            near(~masked, c),
            near(np.where(masked, doubt[m], 0.0), c) / SCALE,
            near(np.where(masked, agreed[m], 0.0), c),
        ]
    return found


def plain_weights(router: Router, log_p: Numbers, x_t: Numbers) -> Numbers:
    """The logit of every expert at every cell of one row."""
    config = router.config
    slots = Layout(config.slots()).unpack(router.vector)
    w = {name: part.double().numpy() for name, part in slots.items()}
    masked = x_t == config.values
    seen = plain_features(log_p, masked)
    if config.kind == "shared":
        if config.profile:
            seen = np.concatenate([seen, np.exp(log_p) @ w["profile"].T], -1)
        others = (seen.sum(0) - seen) / (len(seen) - 1)
        hidden = gelu(np.concatenate([seen, others], -1) @ w["in"].T + w["in_bias"])
        hidden = gelu(hidden @ w["hidden"].T + w["hidden_bias"])
        return (hidden @ w["out"].T + w["out_bias"])[..., 0]
    few = config.values <= FEW_VALUES
    said = np.concatenate([seen, np.exp(log_p)], -1) if few else seen
    line = []
    for cell, value in enumerate(x_t):
        state = [float(masked[cell]), *(np.arange(config.values) == value)] if few else [float(masked[cell])]
        line.append(np.concatenate([said[:, cell].ravel() * masked[cell], state]) @ w["in"].T + w["in_bias"])
    for block, far in zip(range(BLOCKS), DILATIONS, strict=True):
        kernel, lit = w[f"block{block}"][:, :, 0], gelu(np.array(line))
        line = [
            own
            + w[f"block{block}_bias"]
            + sum(
                kernel[:, :, tap] @ lit[place]
                for tap, place in enumerate((cell - far, cell, cell + far))
                if 0 <= place < len(lit)
            )
            for cell, own in enumerate(line)
        ]
    return (gelu(np.array(line)) @ w["out"].T + w["out_bias"]).T
