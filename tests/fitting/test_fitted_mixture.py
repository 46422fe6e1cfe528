"""A router against one fitted weight per expert: on items that chose nothing, never worse by more than noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff import Mixture, compose
from factordiff.composition.composition import Composition
from factordiff.composition.learned import Learned
from factordiff.composition.router import RouterConfig
from factordiff.fitting.data import FittingData
from factordiff.fitting.fitted_mixture import mixture_router, mixture_weights
from factordiff.fitting.predictions import Predictions, predict
from factordiff.fitting.router_fit import held_out_loss
from tests.composition.test_router import LAYOUT, case
from tests.fitting.worlds import cyclic, halves, mixed

World = Callable[..., tuple[list[Any], FittingData]]
WORLDS: dict[str, World] = {
    "cycle": cyclic,
    "halves": halves,
    "mixture of two": partial(mixed, (0.3, 0.7)),
    "mixture of three": partial(mixed, (0.2, 0.3, 0.5)),
    "one alone": partial(mixed, (0.0, 1.0)),
}


def losses(predictions: Predictions, composition: Composition) -> Tensor:
    """What routers are fitted by, item by item."""
    said = composition(predictions.log_probs, predictions.state()).log_probs
    of_truth = said.gather(-1, predictions.x_0[..., None]).squeeze(-1).double()
    rows = torch.where(predictions.asked, -of_truth, 0.0).sum(-1) / predictions.rate
    found = torch.zeros(int(predictions.item.max()) + 1, dtype=torch.float64)
    return found.index_add_(0, predictions.item, rows) / (4 * predictions.x_t.shape[1])


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
@pytest.mark.parametrize("name", WORLDS)
def test_on_fresh_items_it_is_not_worse_than_the_fitted_mixture(name: str, kind: str) -> None:
    experts, data = WORLDS[name](160)
    fitted = compose(experts).fit(data, kind=kind, steps=120, measure=False)
    weights = mixture_weights(
        predict(experts, data.sides()[0])
    ).tolist()  # on the items that the router is fitted on
    fresh = predict(*WORLDS[name](600, seed=1))
    learned = losses(fresh, Learned(fitted.options["router"]))
    worse = learned - losses(fresh, Mixture(weights))
    noise = float(worse.std()) / math.sqrt(len(worse))
    assert float(worse.mean()) < 2 * noise + 1e-3
    if name in ("cycle", "halves"):
        assert float(worse.mean()) < -0.1


def test_where_only_names_tell_experts_apart_it_begins_as_the_mixture() -> None:
    experts, data = mixed((0.3, 0.7), 160)
    report = compose(experts).fit(data, steps=60, measure=False).report
    assert report is not None
    assert [trial.setting["head"] for trial in report.trials] == ["mixture", "product", "mixture"]
    assert report.chosen == 2
    plain, last = report.trials[0].loss, report.best.loss
    assert plain is not None
    assert last is not None
    assert last <= report.notes["loss of the fitted mixture"] < plain - 0.01
    asked_for = compose(experts).fit(data, steps=60, measure=False, heads=("product",)).report
    assert asked_for is not None
    assert len(asked_for.trials) == 1  # who wants a product gets one
    experts, data = halves(32)
    other = compose(experts).fit(data, steps=60, measure=False).report
    assert other is not None
    assert len(other.trials) == 2


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
def test_a_mixture_is_a_router(kind: Any) -> None:
    log_probs, state = case(3, 5)
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    router = mixture_router(RouterConfig(3, 5, kind, "product", LAYOUT), weights)
    found, expected = (one(log_probs, state).log_probs for one in (Learned(router), Mixture(weights)))
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_weights_are_the_likeliest() -> None:
    predictions = predict(*mixed((0.3, 0.7), 200))
    first, second = mixture_weights(predictions).tolist()
    assert first + second == pytest.approx(1.0)
    config = RouterConfig(2, 3)

    def loss(share: float) -> float:
        return held_out_loss(predictions, mixture_router(config, torch.tensor([share, 1 - share])))

    assert loss(first) < min(loss(first - 0.02), loss(first + 0.02))
    assert first == pytest.approx(0.3, abs=0.05)
