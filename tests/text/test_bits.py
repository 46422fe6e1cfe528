"""Bits per hidden cell by hand, and the best fixed numbers against a search over all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks import text_bits as bits
from benchmarks.text_bits import best_mixture, best_product, best_temperatures, fill_in, hidden_log_probs
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import Product
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.streams import Purpose, integers, uniform
from tests.text.tables import Noise

EXPERTS = [Noise(1), Noise(2, sharp=2.0)]


def windows(rows: int = 30, cells: int = 8) -> tuple[Tensor, Tensor]:
    x_0 = integers(5, 0, Purpose.QUERY, torch.arange(rows)[:, None], torch.arange(cells))
    return x_0, uniform(0, Purpose.CORRUPT, torch.arange(rows)[:, None], torch.arange(cells)) < 0.4


def by_hand(x_0: Tensor, hidden: Tensor, choose) -> list[float]:  # type: ignore[no-untyped-def]
    """The bits of every hidden cell, one at a time; `choose` composes the experts' distributions at one cell."""
    x_t = torch.where(hidden, 5, x_0)
    said = [expert.log_probs(x_t, None).exp().double() for expert in EXPERTS]
    return [
        -float(torch.log2(choose([one[row, cell] for one in said], row, cell)[x_0[row, cell]]))
        for row, cell in hidden.nonzero().tolist()
    ]


def margin(p: Tensor) -> float:
    first, second = p.sort(descending=True).values[:2].tolist()
    return first - second


def product(p: list[Tensor], beta: tuple[float, ...]) -> Tensor:
    r = torch.stack([one**b for one, b in zip(p, beta, strict=True)]).prod(0)
    return r / r.sum()


def test_every_row_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "ROWS", 7)
    x_0, hidden = windows()
    owner = integers(2, 0, Purpose.EXPERT, torch.arange(30)[:, None], torch.arange(8))
    methods = {
        "one": Single(0),
        "mixture": Mixture((0.3, 0.7)),
        "product": Product((0.5, 2.0)),
        "routing": Routing(),
    }
    found = fill_in(EXPERTS, methods, x_0, hidden, owner)
    expected = {
        "one": by_hand(x_0, hidden, lambda p, *_: p[0]),
        "mixture": by_hand(x_0, hidden, lambda p, *_: 0.3 * p[0] + 0.7 * p[1]),
        "product": by_hand(x_0, hidden, lambda p, *_: product(p, (0.5, 2.0))),
        "routing": by_hand(x_0, hidden, lambda p, *_: max(p, key=margin)),
        "told": by_hand(x_0, hidden, lambda p, row, cell: p[owner[row, cell]]),
        "oracle": by_hand(x_0, hidden, lambda p, row, cell: max(p, key=lambda one: one[x_0[row, cell]])),
    }
    for name, cost in expected.items():
        assert found[name].bits_per_cell == pytest.approx(np.mean(cost), rel=1e-5), name
        assert int(found[name].cells.sum()) == len(cost) == int(hidden.sum())
        rows = torch.zeros(30, dtype=torch.float64).index_add(
            0, hidden.nonzero()[:, 0], torch.tensor(cost, dtype=torch.float64)
        )
        assert torch.allclose(found[name].bits, rows, atol=1e-5), name
    assert found["oracle"].bits_per_cell < found["weights per window"].bits_per_cell
    assert found["weights per window"].bits_per_cell < found["mixture"].bits_per_cell


def test_the_best_mixture_and_product_are_the_best() -> None:
    x_0, hidden = windows(60)
    said = hidden_log_probs(EXPERTS, x_0, hidden)

    def cost(method: Mixture | Product) -> float:
        return fill_in(EXPERTS, {"it": method}, x_0, hidden)["it"].bits_per_cell

    weights, beta = best_mixture(said), best_product(said)
    assert sum(weights) == pytest.approx(1.0)
    least = cost(Mixture(weights))
    for share in np.linspace(0.001, 0.999, 13):
        assert least <= cost(Mixture((share, 1 - share))) + 1e-7
    least = cost(Product(beta))
    for exponents in itertools.product(np.linspace(0.0, 2.0, 5), repeat=2):
        assert least <= cost(Product(exponents)) + 1e-7


def test_the_weights_of_a_window_are_its_best() -> None:
    x_0, hidden = windows(3, 20)
    found = fill_in(EXPERTS, {}, x_0, hidden)["weights per window"]
    for row in range(3):
        costs = [
            fill_in(EXPERTS, {"it": Mixture((w, 1 - w))}, x_0[[row]], hidden[[row]])["it"].bits.item()
            for w in np.linspace(0.0, 1.0, 11)
        ]
        assert float(found.bits[row]) <= min(costs) + 1e-3


def test_the_best_temperatures_are_the_best_of_the_grid() -> None:
    x_0, hidden = windows(40)
    grid = (0.25, 0.5, 1.0, 2.0, 4.0)
    found = best_temperatures(hidden_log_probs(EXPERTS, x_0, hidden), grid)
    costs = {
        t: fill_in(EXPERTS, {"it": Routing(temperatures=(1.0, t))}, x_0, hidden)["it"].bits_per_cell
        for t in grid
    }
    assert found[0] == 1.0
    assert costs[found[1]] == min(costs.values())
