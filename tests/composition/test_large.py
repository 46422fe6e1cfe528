"""Large vocabularies against the plain float64 form, and distributions cut to their likeliest values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from factordiff import (
    Composition,
    Evidence,
    FactorWeights,
    GeometricMean,
    Mixture,
    Product,
    Routing,
    SamplerState,
    Single,
    SoftRouting,
    SuperDiff,
    SuperDiffAnd,
    Views,
    feynman_kac,
    pixels,
    rne,
    whole,
)
from factordiff.composition.confidence import entropy, error_probability, log_doubt, temper
from factordiff.composition.drawn_expert import DrawnExpert
from factordiff.composition.emission import draw_tokens
from factordiff.composition.learned import Learned
from factordiff.composition.method import specs
from factordiff.composition.relay import Relay
from factordiff.experts.top_k import TopK, product_bound
from factordiff.types import LARGE
from tests.toy import seeds

SIZES = [5, 50_000]
# Of float32 logits: what rounding a log-probability of size 30 may change.
CLOSE = 2e-5

sizes = st.sampled_from([LARGE + 1, 2000, 2048, 7919])


def said(seed: int, *shape: int, sharp: float = 4.0) -> Tensor:
    """Distributions as networks give them, in float32."""
    numbers = np.random.default_rng(seed).normal(size=shape) * sharp
    return torch.log_softmax(torch.from_numpy(numbers).float(), dim=-1)


def plain_margin(log_p: np.ndarray) -> np.ndarray:
    top = np.sort(np.exp(normalised(log_p)), axis=-1)
    return top[..., -1] - top[..., -2]


def plain_log_doubt(log_p: np.ndarray) -> np.ndarray:
    """log(2 p2 + p3 + ...), sorted and added up in float64."""
    p = np.sort(np.exp(log_p - log_p.max(-1, keepdims=True)), axis=-1)
    return np.log(p[..., -2] + p[..., :-1].sum(-1)) - np.log(p.sum(-1))


def normalised(log_r: np.ndarray) -> np.ndarray:
    top = log_r.max(-1, keepdims=True)
    return log_r - top - np.log(np.exp(log_r - top).sum(-1, keepdims=True))


@given(seeds, sizes, st.sampled_from([0.1, 1.0, 5.0, 40.0]))
def test_doubt_and_error_of_many_values(seed: int, values: int, sharp: float) -> None:
    log_p = said(seed, 2, 2, values, sharp=sharp)
    expected = plain_log_doubt(log_p.double().numpy())
    assert log_doubt(log_p).numpy() == pytest.approx(expected, abs=1e-6)
    assert log_doubt(log_p.double()).numpy() == pytest.approx(expected, abs=1e-6)
    p = np.sort(np.exp(log_p.double().numpy()), axis=-1)
    assert error_probability(log_p).numpy() == pytest.approx(p[..., :-1].sum(-1), rel=CLOSE, abs=1e-300)
    assert entropy(log_p).numpy() == pytest.approx(-(p * np.log(p + 1e-300)).sum(-1), rel=1e-6, abs=1e-9)


@given(seeds, sizes, st.sampled_from([torch.float32, torch.float64]))
def test_the_order_of_many_values_does_not_change_a_bit(seed: int, values: int, dtype: torch.dtype) -> None:
    log_p = said(seed, 2, 3, values).to(dtype)
    shuffled = log_p[..., np.random.default_rng(seed).permutation(values)]
    assert torch.equal(log_doubt(log_p), log_doubt(shuffled))
    # So an expert and the same one with its values renamed tie, and the first of them speaks.
    assert (Routing()(torch.stack([shuffled, log_p]), state(2, 3, values)).routing == 0).all()


@pytest.mark.parametrize("values", [LARGE + 1, 2048])
def test_no_cells_have_no_doubt(values: int) -> None:
    nobody = torch.empty(2, 0, 3, values)
    for of_cells in (log_doubt, error_probability):
        found = of_cells(nobody)
        assert (found.shape, found.dtype) == ((2, 0, 3), torch.float64)


@given(seeds, st.sampled_from([2, 5, 96, LARGE]), st.sampled_from([torch.float32, torch.float64]))
def test_few_values_keep_every_bit(seed: int, values: int, dtype: torch.dtype) -> None:
    """Up to LARGE values nothing changed when many came: sorted, in float64, with two sums."""
    log_p = said(seed, 2, 3, values).to(dtype)
    ranked = log_p.sort(-1, descending=True).values.double()
    doubted = torch.cat([ranked[..., 1:2], ranked[..., 1:]], -1)
    assert torch.equal(log_doubt(log_p), doubted.logsumexp(-1) - ranked.logsumexp(-1))
    others = log_p.double().exp().scatter(-1, log_p.argmax(-1, keepdim=True), 0.0)
    assert torch.equal(error_probability(log_p), others.sum(-1).clamp(max=1.0))
    temperatures = torch.tensor([0.5, 2.0])
    hot = torch.log_softmax(log_p.double() / temperatures.double()[:, None, None], -1)
    assert torch.equal(temper(log_p.unsqueeze(1), temperatures).squeeze(1), hot)


def test_ends_of_the_scale_of_many_values() -> None:
    log_p = torch.full((1, 4, LARGE + 7), -torch.inf)
    log_p[0, 0, 3] = 0.0  # a point mass leaves no doubt
    log_p[0, 1, [2, LARGE + 6]] = -math.log(2)  # a tie is all doubt
    log_p[0, 2, [LARGE + 5, LARGE + 6]] = torch.tensor(
        [-1e-30, -100.0]
    )  # both in the last block, which is short
    log_p[0, 3] = math.nan
    doubt, wrong = log_doubt(log_p)[0], error_probability(log_p)[0]
    assert float(doubt[0]) == -math.inf
    assert float(doubt[1]) == pytest.approx(0.0, abs=1e-6)
    assert float(doubt[2]) == pytest.approx(math.log(2) - 100, abs=1e-6)
    assert wrong[:3].tolist() == pytest.approx([0.0, 0.5, math.exp(-100)], rel=1e-6)
    assert doubt[3].isnan()
    assert wrong[3].isnan()


def state(rows: int, cells: int, values: int) -> SamplerState:
    return SamplerState.begin(torch.full((rows, cells), values), values, 3)


def mixed(log_p: np.ndarray, log_w: np.ndarray) -> np.ndarray:
    terms = log_p + log_w
    top = terms.max(0)
    return top + np.log(np.exp(terms - top).sum(0))


def chosen(log_p: np.ndarray, temperatures: list[float] | None = None) -> np.ndarray:
    T = np.ones(len(log_p)) if temperatures is None else np.array(temperatures)
    z = plain_log_doubt(log_p / T[:, None, None, None]).argmin(0)
    return np.take_along_axis(log_p, z[None, :, :, None], 0)[0]


def softly(log_p: np.ndarray) -> np.ndarray:
    raised = np.exp(plain_margin(log_p) / 0.2)
    return mixed(log_p, np.log(raised / raised.sum(0))[..., None])


def viewed(log_p: np.ndarray) -> np.ndarray:
    colors = normalised(log_p[1][..., 1:])
    rest = np.log(np.exp(log_p[0][..., 1:]).sum(-1, keepdims=True))
    return np.concatenate([log_p[0][..., :1], rest + colors], -1)


W = np.log(np.array([0.5, 0.2, 0.3]))[:, None, None, None]
EVEN = np.log(np.ones((3, 1, 1, 1)) / 3)
PLAIN: dict[str, tuple[Composition, Callable[[np.ndarray], np.ndarray]]] = {
    "single": (Single(1), lambda p: p[1]),
    "mixture": (Mixture([0.5, 0.2, 0.3]), lambda p: mixed(p, W)),
    "product": (Product([1.0, 0.5, 0.0]), lambda p: normalised(p[0] + 0.5 * p[1])),
    "geometric mean": (GeometricMean(), lambda p: normalised(p.mean(0))),
    "routing": (Routing(), chosen),
    "routing, tempered": (Routing(temperatures=[1.0, 0.5, 2.0]), lambda p: chosen(p, [1.0, 0.5, 2.0])),
    "routing, whole": (
        Routing(whole(3)),
        lambda p: np.take_along_axis(p, plain_margin(p).mean(-1).argmax(0)[None, :, None, None], 0)[0],
    ),
    "soft": (SoftRouting(0.2), softly),
    "factor weights": (
        FactorWeights(torch.eye(3), pixels(3)),
        lambda p: p[np.arange(3), :, np.arange(3)].swapaxes(0, 1),
    ),
    "superdiff": (SuperDiff(), lambda p: mixed(p, EVEN)),
    "evidence": (Evidence(), lambda p: mixed(p, EVEN)),
    "views": (Views(), viewed),
    "drawn expert": (DrawnExpert([0.5, 0.2, 0.3]), lambda p: mixed(p, W)),
    "fkc": (feynman_kac([1.0, 0.5, 0.0]), lambda p: normalised(p[0] + 0.5 * p[1])),
    "rne": (rne(weights=[0.5, 0.2, 0.3]), lambda p: mixed(p, W)),
    "tie": (Relay(), lambda p: p[0]),  # the first particle is the first expert's
    "learned, untrained": (Learned(), lambda p: mixed(p, EVEN)),
}


@settings(max_examples=4)
@given(seeds)
@pytest.mark.parametrize("values", SIZES)
@pytest.mark.parametrize("name", PLAIN)
def test_every_composition_agrees_with_the_plain_float64_form(name: str, values: int, seed: int) -> None:
    composition, plain = PLAIN[name]
    log_p = said(seed, 3, 2, 3, values)
    found = composition(log_p, state(2, 3, values)).log_probs.double().numpy()
    np.testing.assert_allclose(found, plain(log_p.double().numpy()), rtol=0, atol=CLOSE)


def test_no_method_is_left_out() -> None:
    elsewhere = {SuperDiffAnd}  # in test_large_solved.py
    tested = {type(composition) for composition, _ in PLAIN.values()} | elsewhere
    ours = [spec for spec in specs().values() if spec.build.__module__.startswith("factordiff.")]
    for spec in ours:
        assert type(spec.method({}, ("occupancy", "color")).composition) in tested, spec.name


@pytest.mark.parametrize("values", SIZES)
def test_values_are_drawn_as_often_as_their_probability_says(values: int) -> None:
    log_p = said(5, 1, 1, values, sharp=2.0 if values == 5 else 6.0).expand(400, -1, -1)
    begun = SamplerState.begin(torch.full((400, 1), values), values, 1)
    tokens = draw_tokens(log_p[None], Single()(log_p[None], begun), 1.0, begun)
    likeliest = int(log_p[0, 0].argmax())
    share, p = float((tokens == likeliest).double().mean()), float(log_p[0, 0, likeliest].exp())
    assert 0.02 < p < 0.98
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / 400)


# Cut to the likeliest values.


def distance(one: Tensor, other: Tensor) -> Tensor:
    return (one.double().exp() - other.double().exp()).abs().sum(-1) / 2


@given(seeds, st.integers(2, 40), st.sampled_from([1.0, 4.0, 12.0]))
def test_cut_experts_are_as_far_off_as_they_say(seed: int, k: int, sharp: float) -> None:
    log_p = said(seed, 3, 4, 1500, sharp=sharp)
    cut = [TopK.of(one, k) for one in log_p]
    every = torch.arange(4)
    rough = torch.stack([one.at(every) for one in cut])
    rest = torch.stack([one.log_rest for one in cut]).double().exp()
    assert torch.allclose(rough.double().logsumexp(-1), torch.zeros(3, 4, dtype=torch.float64), atol=1e-4)
    for m, one in enumerate(cut):
        assert torch.equal(
            rough[m].gather(-1, one.values), log_p[m].gather(-1, one.values)
        )  # kept as they are
        assert (distance(rough[m], log_p[m]) <= rest[m] + 1e-6).all()
    # Margins stay, so everybody is routed as before; the routed distribution is off by that expert's remainder.
    assert torch.allclose(log_doubt(rough), log_doubt(log_p), atol=1e-4)
    begun = SamplerState.begin(torch.full((1, 4), 1500), 1500, 3)
    full, routed = (Routing()(p.unsqueeze(1), begun) for p in (log_p, rough))
    assert full.routing is not None
    assert routed.routing is not None
    same = (full.routing == routed.routing)[0]
    off = distance(full.log_probs, routed.log_probs)[0]
    assert (off <= rest.gather(0, full.routing)[0] + 1e-6)[same].all()
    assert (log_doubt(log_p).sort(0).values.diff(dim=0)[0][~same] < 1e-4).all()  # but for near-ties
    weights = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    mixtures = [Mixture(weights.tolist())(p.unsqueeze(1), begun).log_probs[0] for p in (log_p, rough)]
    assert (distance(*mixtures) <= weights @ rest + 1e-6).all()


@given(
    seeds,
    st.integers(2, 60),
    st.sampled_from([2.0, 6.0, 12.0]),
    st.sampled_from([(1.0, 1.0), (0.5, 0.5), (1.0, 0.3)]),
)
def test_a_product_of_cut_experts_is_within_its_bound(
    seed: int, k: int, sharp: float, beta: tuple[float, float]
) -> None:
    log_p = said(seed, 2, 5, 1500, sharp=sharp)
    log_p[1] = torch.log_softmax(0.7 * log_p[0] + 0.3 * log_p[1], -1)  # experts that agree somewhat
    cut, every = [TopK.of(one, k) for one in log_p], torch.arange(5)
    begun = SamplerState.begin(torch.full((1, 5), 1500), 1500, 2)
    rough = torch.stack([one.at(every) for one in cut])
    products = [Product(beta)(p.unsqueeze(1), begun).log_probs[0] for p in (log_p, rough)]
    bound = product_bound(cut, torch.tensor(beta, dtype=torch.float64), every)
    assert (bound <= 1).all()
    assert (distance(*products) <= bound + 1e-6).all()


def test_a_products_bound_holds_for_even_exponents_of_any_number_of_experts() -> None:
    """Six times a sixth is less than 1 in float64."""
    for experts in range(2, 12):
        log_p, beta = said(experts, experts, 3, 1500, sharp=12.0), feynman_kac().target(experts)
        cut, every = [TopK.of(one, 40) for one in log_p], torch.arange(3)
        begun = SamplerState.begin(torch.full((1, 3), 1500), 1500, experts)
        rough = torch.stack([one.at(every) for one in cut])
        products = [GeometricMean()(p.unsqueeze(1), begun).log_probs[0] for p in (log_p, rough)]
        assert (distance(*products) <= product_bound(cut, beta, every) + 1e-6).all()


def test_a_products_bound_is_a_number_where_experts_forbid_values() -> None:
    log_p = said(2, 2, 2, 1500, sharp=3.0)
    forbids = torch.full_like(log_p[0], -torch.inf).index_fill(1, torch.tensor([0, 5]), -math.log(2))
    every, first = torch.arange(2), torch.tensor([1.0, 0.0])
    cut = [TopK.of(log_p[0], 8), TopK.of(forbids, 8)]
    # An expert that does not count leaves the bound of the other alone.
    assert (product_bound(cut, first, every) >= distance(log_p[0], cut[0].at(every)) - 1e-6).all()
    # No value is possible, and nothing was cut: the product is what it was.
    other = forbids.roll(1, -1)
    assert (product_bound([cut[1], TopK.of(other, 8)], torch.ones(2), every) == 0).all()


def test_the_bound_of_a_product_is_small_where_little_was_cut() -> None:
    log_p = said(1, 2, 3, 1500, sharp=12.0)
    log_p[1] = torch.log_softmax(log_p[0] * 0.9, -1)
    cut = [TopK.of(one, 400) for one in log_p]
    assert (product_bound(cut, torch.ones(2, dtype=torch.float64), torch.arange(3)) < 1e-3).all()
    assert torch.equal(TopK.of(log_p[0], 1500).at(torch.arange(3)), log_p[0])  # all kept: nothing changes
