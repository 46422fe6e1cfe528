"""Routers: what they look at, what they are before training, who may use them, and how they are kept."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff import GeometricMean, Mixture, SamplerState
from factordiff.composition import router_features, router_store
from factordiff.composition.learned import Learned, combined
from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_features import EVIDENCE, NAMES, RADIUS, SCALE, around
from factordiff.composition.router_store import load_router, save_router
from factordiff.errors import CheckpointError, InvalidInput

BATCH, LAYOUT = 5, (3, 4)
CELLS = LAYOUT[0] * LAYOUT[1]


def case(
    experts: int, values: int, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, SamplerState]:
    """What experts say about rows of which some cells are revealed."""
    random = np.random.default_rng(seed)
    said = torch.from_numpy(3 * random.standard_normal((experts, BATCH, CELLS, values))).to(dtype)
    x_t = torch.from_numpy(random.integers(0, values + 1, (BATCH, CELLS)))
    x_t[:, ::2] = values
    return torch.log_softmax(said, -1), SamplerState.begin(x_t, values, experts)


def drawn_router(config: RouterConfig, seed: int = 0) -> Router:
    """A router with drawn weights everywhere, its last layer included."""
    size, scale = len(Router.new(config).vector), 0.3 if config.kind == "shared" else 0.05
    return Router(config, scale * torch.from_numpy(np.random.default_rng(seed).standard_normal(size)).float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
@pytest.mark.parametrize("layout", [None, LAYOUT])
@pytest.mark.parametrize("values", [3, 10, 40])
def test_before_training_it_is_the_uniform_mixture(kind, layout, values, dtype) -> None:  # type: ignore[no-untyped-def]
    for experts in (2, 3, 5):
        log_probs, state = case(experts, values, dtype=dtype)
        log_probs[0, 0, 0] = torch.tensor([0.0] + [-math.inf] * (values - 1))
        for head, plain in (("mixture", Mixture()), ("product", GeometricMean())):
            router = Router.new(RouterConfig(experts, values, kind, head, layout, evidence=True))
            composed = Learned(router)(log_probs, state)
            assert torch.equal(composed.log_probs, plain(log_probs, state).log_probs)
            assert composed.weights is not None
    assert torch.equal(Learned()(log_probs, state).log_probs, Mixture()(log_probs, state).log_probs)


@pytest.mark.parametrize("experts", [2, 3, 4])
def test_permuted_experts_have_permuted_weights(experts: int) -> None:
    log_probs, state = case(experts, 5)
    router = drawn_router(RouterConfig(experts, 5, layout=LAYOUT))
    order = torch.tensor([(number + 1) % experts for number in range(experts)])
    plain, moved = Learned(router)(log_probs, state), Learned(router)(log_probs[order], state)
    assert plain.weights is not None
    assert moved.weights is not None
    assert torch.allclose(moved.weights, plain.weights[order], atol=1e-5)
    assert torch.allclose(moved.log_probs, plain.log_probs, atol=1e-5)
    assert (plain.weights - 1 / experts).abs().max() > 0.02


def test_a_shared_router_takes_any_number_of_experts() -> None:
    router = drawn_router(RouterConfig(2, 5, layout=LAYOUT))
    log_probs, state = case(4, 5)
    composed = Learned(router)(log_probs, state)
    assert composed.weights is not None
    assert torch.allclose(composed.weights.sum(0), torch.ones(BATCH, CELLS).double())
    assert torch.allclose(composed.log_probs.logsumexp(-1), torch.zeros(BATCH, CELLS).double(), atol=1e-9)


def test_features_are_the_loop() -> None:
    log_probs, state = case(3, 4)
    earned = -np.random.default_rng(1).random((3, BATCH, CELLS)) * ~state.masked.numpy()
    state = replace(state, log_density=torch.from_numpy(earned))
    found = router_features.features(log_probs, state, LAYOUT, evidence=True).double()
    p, masked = log_probs.exp().numpy(), state.masked.numpy()
    place = {name: number for number, name in enumerate((*NAMES, EVIDENCE))}
    assert found.shape[-1] == len(place)

    def doubt(m: int, row: int, cell: int) -> float:
        first, second = np.sort(p[m, row, cell])[::-1][:2]
        return math.log(1 - (first - second)) / SCALE

    def agreement(m: int, row: int, cell: int) -> float:
        return float(
            np.mean([p[k, row, cell].argmax() == p[m, row, cell].argmax() for k in range(3) if k != m])
        )

    for m, row, cell in np.ndindex(3, BATCH, CELLS):
        first, second = np.sort(p[m, row, cell])[::-1][:2]
        others = [k for k in range(3) if k != m]
        choice = {k: int(p[k, row, cell].argmax()) for k in range(3)}
        near = [
            (r, c)
            for r in range(cell // 4 - RADIUS, cell // 4 + RADIUS + 1)
            for c in range(cell % 4 - RADIUS, cell % 4 + RADIUS + 1)
            if 0 <= r < 3 and 0 <= c < 4
        ]
        window, near = (2 * RADIUS + 1) ** 2, [r * 4 + c for r, c in near]
        hidden = [other for other in near if masked[row, other]]
        lead = [earned[m, row, other] - earned[:, row, other].mean() for other in near]
        expected = {
            "margin": first - second,
            "log-doubt": doubt(m, row, cell),
            "entropy": -(p[m, row, cell] * np.log(p[m, row, cell])).sum() / math.log(4),
            "top probability": first,
            "what it gives to the others' first choices": np.mean(
                [np.log(p[m, row, cell, choice[k]]) / SCALE for k in others]
            ),
            "what the others give to its own": np.mean(
                [np.log(p[k, row, cell, choice[m]]) / SCALE for k in others]
            ),
            "agreement": agreement(m, row, cell),
            "share of masked cells": masked[row].mean(),
            "visible cells near": (len(near) - len(hidden)) / window,
            "its log-doubt near": sum(doubt(m, row, other) for other in hidden) / window,
            "agreement near": sum(agreement(m, row, other) for other in hidden) / window,
            EVIDENCE: np.clip(sum(lead) / SCALE, -3, 3),
        }
        assert expected.keys() == place.keys()
        for name, number in expected.items():
            assert float(found[m, row, cell, place[name]]) == pytest.approx(number, abs=2e-5), name


def test_a_line_has_neighbours_on_two_sides() -> None:
    numbers = torch.arange(6.0)[None, None]
    everything = torch.ones(1, 6, dtype=torch.bool)
    assert around(numbers, everything, None)[0, 0].tolist() == pytest.approx([0.6, 1.2, 2.0, 3.0, 2.8, 2.4])


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
def test_what_is_said_of_revealed_cells_means_nothing(kind: str) -> None:
    log_probs, state = case(2, 5)
    other = torch.where(state.masked[None, :, :, None], log_probs, log_probs.flip(-1))
    learned = Learned(drawn_router(RouterConfig(2, 5, kind, layout=LAYOUT)))  # type: ignore[arg-type]
    one, two = (learned(said, state).weights for said in (log_probs, other))
    assert one is not None
    assert two is not None
    assert torch.allclose(one[:, state.masked], two[:, state.masked], atol=1e-6)


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
def test_a_row_is_weighted_the_same_alone(kind: str) -> None:
    log_probs, state = case(2, 5)
    learned = Learned(drawn_router(RouterConfig(2, 5, kind, layout=LAYOUT)))  # type: ignore[arg-type]
    together = learned(log_probs, state).log_probs
    for row in range(BATCH):
        begun = SamplerState.begin(state.x_t[row : row + 1], 5, 2)
        alone = learned(log_probs[:, row : row + 1], begun).log_probs
        assert torch.allclose(alone[0], together[row], atol=1e-5)


@pytest.mark.parametrize("values", [2, 10, 32, 50_000])
def test_the_shared_kind_is_small(values: int) -> None:
    for evidence in (False, True):
        assert Router.new(RouterConfig(7, values, evidence=evidence, bias=True)).parameters < 1_000


def test_a_complement_corrects_what_is_composed() -> None:
    log_probs, state = case(2, 5)
    config = RouterConfig(2, 5, layout=LAYOUT, complement=True)
    plain = Learned(Router.new(config))(log_probs, state).log_probs
    assert torch.allclose(plain, Mixture()(log_probs, state).log_probs, atol=1e-12)
    router = drawn_router(config)
    routed, found = router(log_probs, state), Learned(router)(log_probs, state).log_probs
    assert routed.complement is not None
    assert torch.allclose(found.logsumexp(-1), torch.zeros(BATCH, CELLS).double(), atol=1e-9)
    # Up to a number for each cell, what is composed without it plus its own logits.
    without = combined(log_probs, routed._replace(complement=None), "mixture").log_probs
    added = found - without - routed.complement.double()
    assert float((added - added.mean(-1, keepdim=True)).abs().max()) < 1e-6
    assert float((found.exp() - without.exp()).abs().max()) > 0.02


@pytest.mark.parametrize(
    ("config", "experts", "values", "sentence"),
    [
        (RouterConfig(2, 4), 2, 5, "made for 4 values, got 5"),
        (RouterConfig(2, 5, layout=(10, 10)), 2, 5, "made for 10 x 10 cells, got 12"),
        (RouterConfig(2, 5, "neighbourhood"), 3, 5, "neighbourhood kind is for 2 experts, got 3"),
        (RouterConfig(2, 5, bias=True), 3, 5, "its bias is for 2 experts, got 3"),
    ],
)
def test_what_it_was_not_made_for_is_refused(
    config: RouterConfig, experts: int, values: int, sentence: str
) -> None:
    log_probs, state = case(experts, values)
    with pytest.raises(InvalidInput, match=sentence):
        Learned(Router.new(config))(log_probs, state)


def test_one_expert_leaves_nothing_to_route() -> None:
    with pytest.raises(InvalidInput, match="experts: expected a whole number from 2 to 1,000, got 1"):
        RouterConfig(1, 5)


@pytest.mark.parametrize("kind", ["shared", "neighbourhood"])
def test_a_folder_gives_the_same_router_back(kind: str, tmp_path: Path) -> None:
    config = RouterConfig(2, 5, kind, "product", LAYOUT, evidence=True, complement=True)  # type: ignore[arg-type]
    router = replace(drawn_router(config), fitted_to=(("a", "1f"), ("b", None)), about={"steps": 3})
    found = load_router(save_router(router, tmp_path / "router").folder or "")
    assert (found.config, found.fitted_to, found.about) == (router.config, router.fitted_to, router.about)
    log_probs, state = case(2, 5)
    one, two = (Learned(one)(log_probs, state).log_probs for one in (router, found))
    assert torch.equal(one, two)
    assert "fitted to a: 1f" in (tmp_path / "router" / "README.md").read_text()


FITTED = (("a", "1f"), ("b", "2f"))


def test_other_experts_are_refused() -> None:
    router = replace(Router.new(RouterConfig(2, 5)), fitted_to=FITTED)
    router_store.check_experts(router, FITTED)
    router_store.check_experts(router, [("other name", "1f"), ("b", "2f")])
    router_store.check_experts(router, FITTED[::-1])  # the order is nothing to it
    by_place = replace(Router.new(RouterConfig(2, 5, bias=True)), fitted_to=FITTED)
    for refusing, others in (
        (by_place, FITTED[::-1]),
        (replace(Router.new(RouterConfig(2, 5, "neighbourhood")), fitted_to=FITTED), FITTED[::-1]),
        (router, [("a", None), ("b", "2f")]),
        (router, [("a", "1f"), ("b", "1f")]),
        (router, [("a", "1f")]),
    ):
        refused = False
        try:
            router_store.check_experts(refusing, others)
        except InvalidInput as error:
            refused = "other_experts='allow'" in str(error)
        assert refused, others
        router_store.check_experts(refusing, others, allow=True)
    router_store.check_experts(Router.new(RouterConfig(2, 5)), [("a", "x")])  # fitted to nobody


def test_a_damaged_folder_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a router's folder"):
        load_router(tmp_path / "nothing")
    folder = tmp_path / "router"
    save_router(Router.new(RouterConfig(2, 5)), folder)
    (folder / "model.safetensors").write_bytes(b"x" * 20)
    with pytest.raises(CheckpointError, match="damaged or not a safetensors file"):
        load_router(folder)
    (folder / "config.json").write_text('{"model_type": "factordiff"}')
    with pytest.raises(CheckpointError, match=r"not a router's configuration \(it is of something else\)"):
        load_router(folder)
