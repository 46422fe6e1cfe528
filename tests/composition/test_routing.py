"""Hard, soft and given weights per factor against their loops."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.composition import factors
from factordiff.composition.confidence import AGGREGATES, log_doubt, temper
from factordiff.composition.routing import FactorWeights, Routing, SoftRouting, route, routed
from tests import oracle
from tests.toy import Drawn, close, drawn, log_probs, seeds, state

temperature = st.sampled_from([0.25, 1.0, 3.0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Drawn, torch.Tensor, list[float]]:
    """Experts at a state, one partition per row, one temperature per expert."""
    case = draw(drawn())
    labels = np.random.default_rng(draw(seeds)).integers(
        draw(st.integers(1, case.x_t.shape[1])), size=case.x_t.shape
    )
    return case, torch.from_numpy(labels), [draw(temperature) for _ in case.p]


@pytest.mark.parametrize("how", AGGREGATES)
@given(cases())
def test_hard_routing_is_the_loop(how: str, given: tuple[Drawn, torch.Tensor, list[float]]) -> None:
    case, labels, temperatures = given
    composed = Routing(labels, temperatures, how)(case.log_p, case.state)
    assert composed.routing is not None
    for row in range(len(labels)):
        hidden = case.state.masked[row].tolist()
        z = oracle.route(case.log_p[:, row].numpy(), labels[row].tolist(), hidden, temperatures, how)
        for cell, expert in enumerate(z):
            if expert is None:
                continue
            found = int(composed.routing[row, cell])
            assert torch.equal(composed.log_probs[row, cell], case.log_p[found, row, cell])
            if found != expert:  # only what float64 cannot tell apart may be told apart otherwise
                members = [c for c in range(len(z)) if hidden[c] and labels[row, c] == labels[row, cell]]
                one, other = (
                    oracle.factor_confidence(
                        [
                            oracle.exact_margin(case.log_p[m, row, c].tolist(), temperatures[m])
                            for c in members
                        ],
                        how,
                    )
                    for m in (found, expert)
                )
                exact = abs(other) if how == "sum-log" else 1 - other
                assert abs(one - other) <= exact * Decimal("1e-12")


@given(drawn())
def test_without_a_partition_every_cell_chooses_for_itself(case: Drawn) -> None:
    alone = Routing()(case.log_p, case.state)
    pixel = Routing(factors.pixels(case.x_t.shape[1]))(case.log_p, case.state)
    hidden = case.state.masked
    assert alone.routing is not None
    assert pixel.routing is not None
    assert torch.equal(alone.routing[hidden], pixel.routing[hidden])
    assert torch.equal(alone.log_probs[hidden], pixel.log_probs[hidden])
    assert alone.log_doubt is not None
    assert torch.equal(alone.log_doubt, log_doubt(alone.log_probs))  # ordered by what is emitted


@given(drawn(), st.data())
def test_tempered_order_is_the_tempered_doubt_of_the_speaker(case: Drawn, data: st.DataObject) -> None:
    temperatures = [data.draw(temperature) for _ in case.p]
    composed = Routing(temperatures=temperatures, order="tempered")(case.log_p, case.state)
    assert composed.routing is not None
    assert composed.log_doubt is not None
    doubts = log_doubt(temper(case.log_p, torch.tensor(temperatures, dtype=torch.float64)))
    for row, cell in case.hidden:
        assert composed.log_doubt[row, cell] == doubts[composed.routing[row, cell], row, cell]


def test_revealed_cells_have_no_say() -> None:
    log_p = torch.log_softmax(
        torch.tensor([[[[9.0, 0.0], [0.5, 0.0]]], [[[0.0, 0.0], [1.0, 0.0]]]]).double(), dim=-1
    )
    start = state(torch.tensor([[0, 2]]), 2, torch.zeros(2, 1, dtype=torch.float64))
    for how in AGGREGATES:
        composed = Routing(factors.whole(2), aggregate=how)(log_p, start)
        assert composed.routing is not None
        assert composed.routing[0, 1] == 1  # the first expert is sure only of the cell that is given


def test_ties_go_to_the_first_expert() -> None:
    doubts = torch.tensor([-1.0, -2.0, -2.0, -torch.inf, -torch.inf]).double().view(5, 1, 1)
    assert route(doubts[:3]).item() == 1
    assert route(doubts).item() == 3
    log_p = log_probs(0, 1, 2, 3, 4).expand(3, -1, -1, -1)
    composed = Routing()(log_p, state(torch.full((2, 3), 4), 4, torch.zeros(3, 2, dtype=torch.float64)))
    assert composed.routing is not None
    assert (composed.routing == 0).all()


@given(drawn(), seeds)
def test_routed_takes_the_named_expert(case: Drawn, seed: int) -> None:
    z = torch.from_numpy(np.random.default_rng(seed).integers(len(case.p), size=case.x_t.shape))
    found = routed(case.log_p, z)
    for row, cell in np.ndindex(*z.shape):
        assert torch.equal(found[row, cell], case.log_p[int(z[row, cell]), row, cell])


@pytest.mark.parametrize("form", ["linear", "geometric"])
@given(cases(), st.sampled_from([0.05, 0.3, 2.0]))
def test_soft_routing_is_the_loop(
    form: str, given: tuple[Drawn, torch.Tensor, list[float]], softness: float
) -> None:
    case, labels, temperatures = given
    composed = SoftRouting(softness, labels, temperatures, form)(case.log_p, case.state)
    for row in range(len(labels)):
        alpha = oracle.soft_weights(
            case.log_p[:, row].numpy(),
            labels[row].tolist(),
            case.state.masked[row].tolist(),
            temperatures,
            softness,
        )
        for cell, weights in enumerate(alpha):
            if weights is not None:
                p = case.p[:, row, cell]
                r = oracle.mixture(p, weights) if form == "linear" else oracle.product(p, weights)[0]
                assert close(composed.log_probs[row, cell].exp(), r, atol=1e-9)


@given(drawn(experts=(2, 3), forbid=False))
def test_softness_runs_from_hard_routing_to_the_uniform_mixture(case: Drawn) -> None:
    hard, hidden = Routing()(case.log_p, case.state).log_probs.exp(), case.state.masked
    margins = -torch.expm1(log_doubt(case.log_p))
    first, second = margins.sort(dim=0, descending=True).values[:2]
    clear = hidden & (first - second > 1e-3)
    assert torch.allclose(
        SoftRouting(1e-5)(case.log_p, case.state).log_probs.exp()[clear], hard[clear], atol=1e-9
    )
    even = case.log_p.exp().mean(0)
    assert torch.allclose(
        SoftRouting(1e6)(case.log_p, case.state).log_probs.exp()[hidden], even[hidden], atol=1e-5
    )


@pytest.mark.parametrize("form", ["linear", "geometric"])
@given(cases(), seeds)
def test_given_weights_are_the_loop(
    form: str, given: tuple[Drawn, torch.Tensor, list[float]], seed: int
) -> None:
    case, labels, _ = given
    alpha = np.random.default_rng(seed).random((len(case.p), case.x_t.shape[1]))
    composed = FactorWeights(torch.from_numpy(alpha), labels, form)(case.log_p, case.state)
    for row, cell in case.hidden:
        weights = alpha[:, labels[row, cell]]
        p = case.p[:, row, cell]
        r = (
            oracle.product(p, weights)[0]
            if form == "geometric"
            else oracle.mixture(p, weights / weights.sum())
        )
        assert close(composed.log_probs[row, cell].exp(), r, atol=1e-9)


@given(cases(), seeds)
def test_one_hot_weights_are_hard_routing_in_both_forms(
    given: tuple[Drawn, torch.Tensor, list[float]], seed: int
) -> None:
    case, labels, _ = given
    experts, cells = len(case.p), case.x_t.shape[1]
    chosen = torch.from_numpy(np.random.default_rng(seed).integers(experts, size=cells))
    alpha = torch.nn.functional.one_hot(chosen, experts).T.double()
    for form in ("linear", "geometric"):
        composed = FactorWeights(alpha, labels, form)(case.log_p, case.state)
        expected = routed(case.log_p, chosen[labels])
        assert torch.allclose(composed.log_probs, expected, atol=1e-12)
