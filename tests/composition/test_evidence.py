"""Evidence routing against its loops: sums over factors, kernels, what is ruled out, what is given."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from factordiff import compose
from factordiff.composition.evidence import DEFAULT_FACTORS, Evidence, smoothed
from factordiff.composition.factor_names import window
from factordiff.composition.factors import factor_sums, rows
from factordiff.composition.method import spec
from factordiff.composition.routing import FactorWeights, SoftRouting
from factordiff.engine.engine import Engine
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByMargin, Repaired
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from tests import oracle
from tests.block_world import kappa
from tests.toy import CELLS, EXPERTS, MASK, Drawn, close, drawn, log_probs, seeds, states

ROOT = Path(__file__).parents[2]


def on_the_way(case: Drawn, seed: int) -> SamplerState:
    """The case's state with densities at its revealed cells; some experts have ruled some out."""
    random = np.random.default_rng(seed)
    density = torch.from_numpy(-3 * random.random(case.log_p.shape[:3]))
    density[torch.from_numpy(random.random(density.shape) < 0.1)] = -torch.inf
    return replace(case.state, log_density=torch.where(case.state.masked, 0.0, density))


@given(drawn(), seeds, st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
def test_weights_are_the_loop(case: Drawn, seed: int, T: float, told: bool) -> None:
    random = np.random.default_rng(seed)
    experts, batch, cells, _ = case.log_p.shape
    omega, bias = random.random(experts) + 0.01, random.standard_normal(experts)
    labels = torch.from_numpy(random.integers(cells, size=(batch, cells)))
    extra = torch.from_numpy(-random.random((experts, batch, cells))) if told else None
    here = on_the_way(case, seed)
    evidence = Evidence(labels, temperature=T, weights=omega.tolist(), bias=bias.tolist(), evidence=extra)
    composed = evidence(case.log_p, here)
    assert composed.weights is not None
    assert composed.routing is not None
    assert close(composed.weights.sum(0), np.ones((batch, cells)))
    for row, cell in np.ndindex(batch, cells):
        ell = [0.0] * experts
        for other in range(cells):
            if labels[row, other] == labels[row, cell]:
                for m in range(experts):
                    ell[m] += float(here.log_density[m, row, other])
                    ell[m] += 0.0 if extra is None else float(extra[m, row, other])
        expected = kappa(ell, omega, T, bias)
        assert close(composed.weights[:, row, cell], expected)
        assert expected[int(composed.routing[row, cell])] == pytest.approx(max(expected))
        if (row, cell) in case.hidden:
            assert close(composed.log_probs[row, cell].exp(), oracle.mixture(case.p[:, row, cell], expected))


@given(drawn(), seeds)
def test_kernels_are_the_loop(case: Drawn, seed: int) -> None:
    random = np.random.default_rng(seed)
    experts, batch, cells, _ = case.log_p.shape
    kernel = torch.from_numpy(random.random((cells, cells)) * (random.random((cells, cells)) < 0.6))
    here = on_the_way(case, seed)
    composed = Evidence(kernel=kernel)(case.log_p, here)
    assert composed.weights is not None
    assert composed.log_kappa is None  # each cell is drawn from its own mixture
    assert composed.owners is None
    for row, cell in np.ndindex(batch, cells):
        ell = [
            sum(
                float(kernel[u, cell]) * float(here.log_density[m, row, u])
                for u in range(cells)
                if kernel[u, cell] > 0  # 0 log 0 is 0
            )
            for m in range(experts)
        ]
        assert close(composed.weights[:, row, cell], kappa(ell, [1.0] * experts, 1.0, [0.0] * experts))


def test_the_kernel_of_a_partition_is_the_partition() -> None:
    labels = torch.tensor([0, 2, 2, 0, 1])
    log_p = log_probs(1, 3, 6, 5, 4)
    here = SamplerState.begin(states(1, 6, 5, 4), 4, 3)
    density = torch.where(here.masked, 0.0, -torch.rand(3, 6, 5, generator=torch.Generator().manual_seed(0)))
    here = replace(here, log_density=density.double())
    soft = Evidence(kernel=(labels[:, None] == labels).double())(log_p, here)
    hard = Evidence(labels)(log_p, here)
    assert torch.allclose(soft.log_probs, hard.log_probs, atol=1e-14)


def test_a_rows_smoothing_does_not_depend_on_the_others() -> None:
    random = np.random.default_rng(0)
    of_cells, kernel = (
        torch.from_numpy(random.normal(size=(2, 50, 33))),
        torch.from_numpy(random.random((33, 33))),
    )
    together = smoothed(of_cells, kernel)
    for count in (1, 2, 7, 13):
        assert torch.equal(smoothed(of_cells[:, :count], kernel), together[:, :count])


@given(seeds, st.integers(1, 6), st.integers(1, 3))
def test_sums_over_factors_are_the_loop(seed: int, cells: int, batch: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(cells, size=(batch, cells))
    numbers = random.normal(size=(2, batch, cells))
    found = factor_sums(torch.from_numpy(numbers), torch.from_numpy(labels))
    for m, row, cell in np.ndindex(2, batch, cells):
        together = labels[row] == labels[row, cell]
        assert float(found[m, row, cell]) == pytest.approx(numbers[m, row, together].sum())


def test_where_every_expert_has_ruled_a_factor_out_the_prior_speaks_there_alone() -> None:
    log_p = log_probs(0, 2, 1, 4, 3)
    begun = SamplerState.begin(torch.tensor([[0, 3, 1, 3]]), 3, 2)
    density = torch.zeros_like(begun.log_density)
    density[:, 0, 0] = -torch.inf  # of the first factor: both
    density[0, 0, 2] = -torch.inf  # of the second: one
    composed = Evidence(rows(2, 2), weights=[1.0, 3.0])(log_p, replace(begun, log_density=density))
    assert composed.weights is not None
    assert close(composed.weights[:, 0, 1], [0.25, 0.75])
    assert close(composed.weights[:, 0, 3], [0.0, 1.0])


def test_one_expert_is_itself() -> None:
    log_p = log_probs(2, 1, 5, 4, 3, forbid=0.4)
    here = SamplerState.begin(states(2, 5, 4, 3), 3, 1)
    here = replace(here, log_density=torch.where(here.masked, 0.0, -torch.inf)[None].double())
    for evidence in (Evidence(), Evidence(rows(2, 2), bias=[2.0]), Evidence(kernel=torch.ones(4, 4))):
        assert torch.equal(evidence(log_p, here).log_probs, log_p[0])


def test_what_was_taken_back_is_no_evidence() -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    class Watched(Evidence):
        def __call__(self, log_probs: Tensor, state: SamplerState):  # type: ignore[no-untyped-def]
            seen.append((self.evidence_of_cells(state), state.masked))
            return super().__call__(log_probs, state)

    sample(EXPERTS, Watched(rows(2, 2)), torch.full((8, CELLS), MASK), reveal=Repaired(ByMargin(0.3), 0.9))
    assert all((found[:, masked] == 0).all() for found, masked in seen)
    hidden = [int(masked.sum()) for _, masked in seen]
    assert any(later > earlier for earlier, later in pairwise(hidden))  # some were


TABLES = [np.random.default_rng(seed).dirichlet(np.full(81, 0.3), size=2) for seed in (4, 5)]
TOLD = [TabularExpert(torch.from_numpy(table.reshape(2, 3, 3, 3, 3)), conditions=True) for table in TABLES]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("smooth", [False, True])
def test_every_item_keeps_its_evidence_and_factors_in_any_batch(temperature: float, smooth: bool) -> None:
    items = 30
    x_t = states(3, items, CELLS, MASK, hidden=0.7)
    random = np.random.default_rng(3)
    extra = torch.from_numpy(random.normal(size=(2, items, CELLS)))
    labels = torch.arange(items)[:, None] % torch.tensor([[1, 2, 3, 4]])
    kernel = torch.from_numpy(random.random((CELLS, CELLS)))
    evidence = Evidence(kernel=kernel, evidence=extra) if smooth else Evidence(labels, evidence=extra)
    request = {"condition": torch.arange(items) % 2, "temperature": temperature, "reveal": ByConfidence(2)}
    request |= {"items": 100 - torch.arange(items), "particles": 2, "seed": 5}
    plain = sample(TOLD, evidence, x_t, **request)
    for engine in (Engine(), Engine(12), Engine(7, share=False)):
        other = engine.sample(TOLD, evidence, x_t, **request)
        assert torch.equal(other.particles, plain.particles)
        assert torch.equal(other.log_density, plain.log_density)
    moved = (
        Evidence(kernel=kernel, evidence=extra.roll(1, 1))
        if smooth
        else Evidence(labels, evidence=extra.roll(1, 1))
    )
    assert not torch.equal(sample(TOLD, moved, x_t, **request).particles, plain.particles)


def test_weights_are_there_to_be_read() -> None:
    log_p = log_probs(4, 2, 3, 4, 5)
    here = SamplerState.begin(torch.full((3, 4), 5), 5, 2)
    soft = SoftRouting(0.2, rows(2, 2))(log_p, here)
    told = FactorWeights(torch.tensor([[1.0, 3.0], [1.0, 1.0]]), rows(2, 2), "linear")(log_p, here)
    for composed in (soft, told, Evidence(rows(2, 2), weights=[1.0, 4.0])(log_p, here)):
        assert composed.weights is not None
        mixed = (composed.weights[..., None] * log_p.exp()).sum(0)
        assert close(composed.log_probs.exp(), mixed.numpy())


def test_by_default_it_learns_from_what_lies_near_and_one_cell_after_the_other() -> None:
    """Pixels would be the plain mixture, and a rule that opens most cells at once leaves nothing to learn from."""
    declared = spec("evidence")
    assert (declared.factors, declared.reveal) == (DEFAULT_FACTORS, "exact") == ("near:2", "exact")
    assert f'`factors="{DEFAULT_FACTORS}"` (default)' in (ROOT / "docs" / "methods.md").read_text()
    drawn = {"temperature": 1.0, "seed": 2}
    by_name, mixed = (
        compose(EXPERTS, method, reveal="exact").sample(torch.full((200, CELLS), MASK), **drawn).x_0  # type: ignore[arg-type]
        for method in ("evidence", "mixture")
    )
    kernel = Evidence(kernel=window(DEFAULT_FACTORS, CELLS))
    by_hand = compose(EXPERTS, kernel, reveal="exact").sample(torch.full((200, CELLS), MASK), **drawn).x_0  # type: ignore[arg-type]
    assert torch.equal(by_name, by_hand)
    assert not torch.equal(by_name, mixed)


def test_temperature_flattens_and_bias_leans() -> None:
    log_p = log_probs(5, 2, 1, 2, 3)
    begun = SamplerState.begin(torch.tensor([[1, 3]]), 3, 2)
    density = torch.zeros_like(begun.log_density)
    density[:, 0, 0] = torch.tensor([-1.0, -3.0])
    here = replace(begun, log_density=density)
    for T, bias in ((1.0, 0.0), (4.0, 0.0), (4.0, 0.7)):
        weights = Evidence(temperature=T, bias=[bias, 0.0])(log_p, here).weights
        assert weights is not None
        assert float(weights[0, 0, 1]) == pytest.approx(1 / (1 + math.exp(-2.0 / T - bias)))
