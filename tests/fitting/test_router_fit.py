"""Routers learn who should speak, told nothing; the same weights each time, and after an interruption."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from factordiff import Mixture, compose
from factordiff.composition.learned import Learned, combined
from factordiff.composition.mixture import mixture
from factordiff.composition.router import Head, Kind, Router, RouterConfig
from factordiff.composition.router_features import LEAST_LOG
from factordiff.fitting import router_fit
from factordiff.fitting.predictions import Predictions, predict
from factordiff.fitting.router_fit import FitSettings, fit_router, held_out_loss
from factordiff.networks.parameters import Layout
from factordiff.toy.overconfidence import VALUES
from tests.composition.test_router import LAYOUT, case, drawn_router
from tests.fitting.worlds import Half, cyclic, halves

QUICK = FitSettings(steps=90, batch=32, rate=3e-2, check_every=30, save_every=30)


def two_sides(predictions: Predictions, items: int) -> tuple[Predictions, Predictions]:
    kept = predictions.item >= items * 3 // 4
    return predictions.rows((~kept).nonzero().squeeze(-1)), predictions.rows(kept.nonzero().squeeze(-1))


def right(predictions: Predictions, composition: object) -> float:
    composed = composition(predictions.log_probs, predictions.state())  # type: ignore[operator]
    return float((composed.log_probs.argmax(-1) == predictions.x_0)[predictions.asked].double().mean())


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
def test_in_a_cycle_of_over_confidence_it_finds_all_three(kind: str) -> None:
    experts, data = cyclic()
    here, there = two_sides(predict(experts, data), len(data))
    config = RouterConfig(3, VALUES, kind)  # type: ignore[arg-type]
    router = fit_router(here, there, config, QUICK).router
    assert right(there, Learned(router)) == 1.0
    drawn = compose(experts, "learned", router=router).sample(
        torch.full_like(data.answers, VALUES), data.condition
    )
    assert torch.equal(drawn.x_0, data.answers)
    confidence = compose(experts).sample(torch.full_like(data.answers, VALUES), data.condition)
    assert not (confidence.x_0 == data.answers).any()


@pytest.mark.parametrize("head", ["mixture", "product"])
def test_on_a_world_with_owners_it_finds_them(head: Head) -> None:
    experts, data = halves()
    here, there = two_sides(predict(experts, data), len(data))
    fitted = fit_router(here, there, RouterConfig(2, 3, head=head, layout=data.layout), QUICK)
    composed = Learned(fitted.router)(there.log_probs, there.state())
    assert composed.routing is not None
    assert data.owner is not None
    found = (composed.routing == data.owner[there.item])[there.asked].double().mean()
    assert float(found) > 0.99
    assert right(there, Learned(fitted.router)) > 0.99
    assert right(there, Mixture()) < 0.6
    assert fitted.loss < fitted.curve[0][1]


def _mixture_loss(predictions: Predictions, share: float) -> float:
    others = len(predictions.log_probs) - 1
    weights = torch.tensor([share] + [(1 - share) / others] * others)
    log_r = mixture(predictions.log_probs.clamp(min=LEAST_LOG), weights.log())
    said = log_r.gather(-1, predictions.x_0[..., None]).squeeze(-1)
    each = torch.where(predictions.asked, -said, 0.0).sum(-1) / predictions.rate
    return float(each.mean() / predictions.x_t.shape[1])


def test_the_loss_of_an_untrained_router_is_the_uniform_mixtures() -> None:
    experts, data = halves()
    predictions = predict(experts, data)
    assert held_out_loss(predictions, Router.new(RouterConfig(2, 3))) == pytest.approx(
        _mixture_loss(predictions, 0.5), rel=1e-5
    )


@pytest.mark.parametrize("head", ["mixture", "product"])
@pytest.mark.parametrize("complement", [False, True])
def test_what_is_fitted_is_what_is_composed(head: Head, complement: bool) -> None:
    log_probs, state = case(3, 5)
    router = drawn_router(RouterConfig(3, 5, head=head, layout=LAYOUT, complement=complement))
    routed = router(log_probs, state)
    x_0 = state.x_t.clamp(max=4)
    expected = combined(log_probs, routed, head).log_probs.gather(-1, x_0[..., None]).squeeze(-1)
    assert torch.allclose(router_fit.log_likelihood(log_probs, routed, x_0, head), expected, atol=1e-6)


class Certain(Half):
    """As `Half`, and in the other's half it leaves nothing for any other value."""

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        nothing = torch.full((*x_t.shape, 3), -torch.inf, dtype=torch.float64)
        claimed = nothing.index_fill(-1, torch.tensor([0]), 0.0)
        return torch.where(self.home[:, None], super().log_probs(x_t, encoded), claimed)


def test_a_veto_counts_where_routers_are_held_against_each_other() -> None:
    """No product outvotes an expert's zero, no complement all experts' zeros: held out a router loses what it does."""
    _, data = halves()
    experts = [Certain(0), Certain(1)]
    both_veto = predict([experts[0], experts[0]], data)
    each = predict(experts, data), both_veto
    for predictions, head, complement in (
        (each[0], "product", False),
        (each[0], "product", True),
        (each[1], "mixture", True),
    ):
        router = drawn_router(RouterConfig(2, 3, head=head, complement=complement))  # type: ignore[arg-type]
        said = Learned(router)(predictions.log_probs, predictions.state()).log_probs
        said = said.gather(-1, predictions.x_0[..., None]).squeeze(-1).clamp(min=LEAST_LOG)
        rows = torch.where(predictions.asked, -said, 0.0).sum(-1) / predictions.rate
        expected = float(rows.mean() / predictions.x_t.shape[1])
        assert held_out_loss(predictions, router) == pytest.approx(expected, rel=1e-4)
    fitted = compose(experts).fit(data, "router", steps=60)
    assert fitted.options["router"].config.head == "mixture"
    assert fitted.report.best.score.cells > 0.99


class AllButCertain(Half):
    """As `Half`, and in the other's half it leaves next to nothing, e^-30, for any other value."""

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        claimed = torch.full((*x_t.shape, 3), -30.0, dtype=torch.float64)
        claimed[..., 0] = math.log1p(-2 * math.exp(-30.0))
        return torch.where(self.home[:, None], super().log_probs(x_t, encoded), claimed)


@pytest.mark.parametrize("certain", [AllButCertain, Certain])
def test_what_a_product_is_trained_by_is_what_it_is_held_against(certain: type[Half]) -> None:
    """Next to nothing is as little as the expert says, which an exponent can undo; of a veto nothing is learned."""
    _, data = halves()
    predictions = predict([certain(0), certain(1)], data)
    config = RouterConfig(2, 3, head="product", layout=data.layout)
    router, layout = drawn_router(config), Layout(config.slots())
    vector = router.vector.clone().requires_grad_(True)
    trained = router_fit._AllReady(predictions, config).loss(layout, vector, torch.arange(len(predictions)))
    assert float(trained.detach()) == pytest.approx(held_out_loss(predictions, router), rel=1e-5)
    (slope,) = torch.autograd.grad(trained, vector)
    assert bool((slope == 0).all()) == (certain is Certain)  # every cell is vetoed there


def test_one_seed_one_router_another_seed_another() -> None:
    experts, data = halves()
    here, there = two_sides(predict(experts, data), len(data))
    config = RouterConfig(2, 3)
    one, two, other = (
        fit_router(here, there, config, replace(QUICK, seed=seed)).router.vector for seed in (1, 1, 2)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
def test_rows_of_several_lengths_are_fitted_together(kind: Kind) -> None:
    config = RouterConfig(2, 3, kind)
    longer, shorter = (predict(*halves(12, cells=cells)) for cells in (8, 4))
    router = drawn_router(config)
    each = [held_out_loss(one, router) for one in (longer, shorter)]
    both = held_out_loss([longer, shorter], router)
    assert both == pytest.approx(sum(each) / 2, rel=1e-5)  # as many rows of either length
    # Cut into two, rows are the same rows: the same are drawn, and what is learned is the same.
    here, there = two_sides(longer, 12)
    first, second = (here.rows(part) for part in torch.arange(len(here)).split(len(here) // 2))
    settings = replace(QUICK, steps=10)
    whole = fit_router(here, there, config, settings)
    cut = fit_router([first, second], [there], config, settings)
    assert cut.loss == pytest.approx(whole.loss, rel=1e-3)
    assert cut.loss < 0.9 * whole.curve[0][1]


def test_an_interrupted_fit_goes_on_to_the_same_router(tmp_path: Path) -> None:
    experts, data = halves()
    here, there = two_sides(predict(experts, data), len(data))
    config, file = RouterConfig(2, 3), tmp_path / "fit.safetensors"
    whole = fit_router(here, there, config, QUICK)

    class Stopped(Exception):
        pass

    steps: list[int] = []

    def stop(step: int, total: int) -> None:
        steps.append(step)
        if step == 70:
            raise Stopped

    with pytest.raises(Stopped):
        fit_router(here, there, config, QUICK, checkpoint=file, on_step=stop)
    again = fit_router(
        here, there, config, QUICK, checkpoint=file, on_step=lambda step, _: steps.append(step)
    )
    assert torch.equal(again.router.vector, whole.router.vector)
    assert again.curve == whole.curve
    assert steps[70] == 61  # it went on from the last checkpoint, not from the start
    file.write_bytes(file.read_bytes()[:100])
    assert torch.equal(
        fit_router(here, there, config, QUICK, checkpoint=file).router.vector, whole.router.vector
    )
