"""Compositions that solve an equation, decide hard or ask a network, against plain float64 forms."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from factordiff import HardViews, SamplerState, SuperDiffAnd
from factordiff.composition.learned import Learned
from factordiff.composition.router import RouterConfig
from factordiff.composition.superdiff import SMALLEST_PROBABILITY
from tests.composition.plain_router import plain_weights
from tests.composition.test_large import CLOSE, SIZES, mixed, normalised, said
from tests.composition.test_router import drawn_router
from tests.toy import seeds

ROWS, CELLS = 2, 6
# Weights are numbers of a float32 network, or the zero of a float32 slope: a few times the rounding of the rest.
SOLVED = 1e-4


def begun(seed: int, values: int) -> SamplerState:
    """Rows of which some cells are given."""
    x_t = torch.from_numpy(np.random.default_rng(seed).integers(0, values, (ROWS, CELLS)))
    x_t[:, ::2] = values
    return SamplerState.begin(x_t, values, 2)


def linear_balance(log_p: np.ndarray, masked: np.ndarray) -> np.ndarray:
    """The mixture by KL(p2 || p1) / (KL(p1 || p2) + KL(p2 || p1)), over a row's masked cells together."""
    floor = np.maximum(log_p, np.log(SMALLEST_PROBABILITY))
    ratio = floor[0] - floor[1]
    there = (np.exp(floor[0]) * ratio).sum(-1)[masked].sum()
    back = -(np.exp(floor[1]) * ratio).sum(-1)[masked].sum()
    kappa = min(max(back / (there + back), 0.0), 1.0)
    return mixed(log_p, np.log(np.array([kappa, 1 - kappa]))[:, None, None])


def geometric_balance(log_p: np.ndarray, masked: np.ndarray) -> np.ndarray:
    """The exponents (k, 1 - k) at which both experts expect the same of the product: halved again and again."""
    floor = np.maximum(log_p, np.log(SMALLEST_PROBABILITY))
    low, high = 0.0, 1.0
    for _ in range(60):
        k = (low + high) / 2
        r = np.exp(normalised(k * floor[0] + (1 - k) * floor[1]))
        ahead = (r * (floor[0] - floor[1])).sum(-1)[masked].sum()
        low, high = (low, k) if ahead > 0 else (k, high)
    return normalised(low * log_p[0] + (1 - low) * log_p[1])


@settings(max_examples=3)
@given(seeds)
@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize(("form", "plain"), [("linear", linear_balance), ("geometric", geometric_balance)])
def test_balances(form: Literal["linear", "geometric"], plain: Any, values: int, seed: int) -> None:
    log_p, state = said(seed, 2, ROWS, CELLS, values), begun(seed, values)
    found = SuperDiffAnd(form)(log_p, state).log_probs.double().numpy()
    for row, masked in enumerate(state.masked.numpy()):
        expected = plain(log_p[:, row].double().numpy(), masked)
        np.testing.assert_allclose(found[row], expected, rtol=0, atol=SOLVED)


@settings(max_examples=5)
@given(seeds)
@pytest.mark.parametrize("values", SIZES)
def test_hard_views(values: int, seed: int) -> None:
    log_p = said(seed, 2, ROWS, CELLS, values)
    log_p[0, ..., 0] += 11.0 if values > 5 else 1.0  # so that some cells are background
    log_p = torch.log_softmax(log_p, -1)
    found = HardViews()(log_p, begun(seed, values)).log_probs.double().numpy()
    occupancy, color = log_p.double().numpy()
    for row, cell in np.ndindex(ROWS, CELLS):
        expected = np.full(values, -np.inf)
        if np.exp(occupancy[row, cell, 0]) > 0.5:
            expected[0] = 0.0
        else:
            expected[1:] = normalised(color[row, cell, 1:])
        np.testing.assert_allclose(found[row, cell], expected, rtol=0, atol=CLOSE)


@settings(max_examples=3)
@given(seeds)
@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
@pytest.mark.parametrize("head", ["mixture", "product"])
def test_routers(head: Any, kind: Any, values: int, seed: int) -> None:
    router = drawn_router(RouterConfig(2, values, kind, head), seed)
    log_p, state = said(seed, 2, ROWS, CELLS, values), begun(seed, values)
    found = Learned(router)(log_p, state)
    assert found.weights is not None
    assert float((found.weights - 0.5).abs().max()) > 0.01  # it prefers somebody
    for row, masked in enumerate(state.masked.numpy()):
        p = log_p[:, row].double().numpy()
        logits = plain_weights(router, p, state.x_t[row].numpy())[..., None]
        if head == "mixture":
            expected = mixed(p, logits - np.log(np.exp(logits).sum(0)))
        else:
            expected = normalised((np.exp(logits) / 2 * p).sum(0))
        ours = found.log_probs[row].double().numpy()
        # A product multiplies what is off in a weight by the size of a log-probability.
        off = SOLVED if head == "mixture" else SOLVED * float(-p.min())
        np.testing.assert_allclose(ours[masked], expected[masked], rtol=0, atol=off)
