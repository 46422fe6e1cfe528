"""Property 15: evidence routing gives each factor to whoever predicted it, exactly where that is the truth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from itertools import product as tuples

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import Corrected, rne
from factordiff.composition.evidence import Evidence
from factordiff.composition.factors import pixels, whole
from factordiff.composition.mixture import Mixture
from factordiff.composition.superdiff import SuperDiff
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.streams import Purpose
from factordiff.toy.law import exact_law
from factordiff.toy.laws import CellByCell
from tests import enumeration
from tests.block_world import BlockWorld, Choose, evidence_law, in_turn, surest_first
from tests.enumeration import tv
from tests.toy import (
    CELLS,
    EXPERTS,
    MASK,
    P_1,
    P_2,
    P_3,
    ROUNDING,
    STATES,
    assert_drawn_from,
    empty,
    normalised,
)

# labels, prior weights, how far off the plain mixture and global SuperDiff are
WORLDS = {
    "halves": ((0, 0, 1, 1), (0.3, 0.7), 0.1011, 0.2970),
    "interleaved": ((0, 1, 0, 1), (0.3, 0.7), 0.1011, 0.2970),
    "three experts": ((0, 1, 1, 0), (0.2, 0.3, 0.5), 0.2044, 0.2638),
    "three and one": ((0, 0, 0, 1), (0.2, 0.3, 0.5), 0.1536, 0.0952),
}


class InTurn(RevealRule):
    """One group of cells after the other."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        self.turns = torch.tensor([[cell in group for cell in range(CELLS)] for group in groups])

    def candidates(self, state: SamplerState) -> Tensor:
        return state.masked & self.turns[state.clock.clamp(max=len(self.turns) - 1)]

    def choose(self, posterior: object, candidates: Tensor, state: SamplerState) -> Tensor:
        return candidates


class OneOfEachFactor(RevealRule):
    """In every step one masked cell of each factor, drawn."""

    def __init__(self, labels: Sequence[int]) -> None:
        self.together = torch.tensor(labels)[:, None] == torch.tensor(labels)

    def candidates(self, state: SamplerState) -> Tensor:
        numbers = state.draws.cells(Purpose.REVEAL, state.clock, CELLS)
        numbers = torch.where(state.masked, numbers, 2.0)
        return state.masked & (numbers == torch.where(self.together, numbers[:, None, :], 2.0).amin(-1))

    def choose(self, posterior: object, candidates: Tensor, state: SamplerState) -> Tensor:
        return candidates


def made(name: str) -> tuple[BlockWorld, list[TabularExpert], Evidence]:
    labels, omega, *_ = WORLDS[name]
    world = BlockWorld(labels, omega)
    experts = [TabularExpert(torch.from_numpy(table)) for table in world.tables]
    return world, experts, Evidence(torch.tensor(labels), weights=omega)


def law(experts: Sequence[TabularExpert], composition: Composition, **options: object) -> np.ndarray:
    return exact_law(experts, composition, CELLS, **options).distribution().numpy()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WORLDS)
def test_15_each_factor_is_drawn_from_the_mixture_of_the_experts_laws(name: str) -> None:
    world, experts, evidence = made(name)
    truth = world.mixed()
    assert tv(law(experts, evidence), truth) < ROUNDING
    for order in permutations(range(CELLS)):
        assert tv(law(experts, evidence, reveal=InTurn([[cell] for cell in order])), truth) < ROUNDING
    *_, mixture, superdiff = WORLDS[name]
    assert tv(law(experts, Mixture(world.omega)), truth) == pytest.approx(mixture, abs=5e-5)
    assert tv(law(experts, SuperDiff(world.omega)), truth) == pytest.approx(superdiff, abs=5e-5)
    assert (
        tv(law(experts, CellByCell(evidence)), truth) < ROUNDING
    )  # one cell a step: nobody shares a speaker


@pytest.mark.parametrize("groups", [[[0, 2], [1, 3]], [[3, 1], [0], [2]], [[1, 2], [0, 3]]])
def test_15_factors_may_be_opened_together(groups: list[list[int]]) -> None:
    world, experts, evidence = made("halves")
    assert tv(law(experts, evidence, reveal=InTurn(groups)), world.mixed()) < ROUNDING


@pytest.mark.parametrize("name", ["halves", "three experts"])
def test_15_drawn_orders_draw_the_truth(name: str) -> None:
    world, experts, evidence = made(name)
    truth, rule = world.mixed(), OneOfEachFactor(world.labels)

    def draw(composition: Composition) -> Tensor:
        return sample(experts, composition, empty(20_000), reveal=rule, temperature=1.0, seed=15).x_0

    assert_drawn_from(draw(evidence), truth)
    for wrong in (Mixture(world.omega), SuperDiff(world.omega)):
        with pytest.raises(AssertionError, match="chi-squared"):
            assert_drawn_from(draw(wrong), truth)


def test_15_several_cells_of_a_factor_are_spoken_by_one_expert() -> None:
    world, experts, evidence = made("three and one")
    for rule, choose in (
        (ByConfidence(2), surest_first(world.world, 2)),
        (InTurn([[0, 1], [2, 3]]), in_turn([[0, 1], [2, 3]])),
        (InTurn([[0, 1, 2, 3]]), in_turn([[0, 1, 2, 3]])),
    ):
        found = law(experts, evidence, reveal=rule)
        # every way of giving the factors to experts, who then run alone in the same order
        alone = np.zeros_like(found)
        for owners in tuples(range(3), repeat=2):
            chance = np.prod([world.omega[owner] for owner in owners])
            alone += chance * evidence_law(world.world, world.labels, world.omega, choose, owners=owners)
        assert tv(found, alone) < ROUNDING
        assert tv(law(experts, CellByCell(evidence), reveal=rule), alone) > 0.02
    drawn = sample(experts, evidence, empty(20_000), reveal=rule, temperature=1.0, seed=16)
    assert_drawn_from(drawn.x_0, found)


def test_15_ancestral_runs_mix_the_experts_own_ancestral_runs() -> None:
    world, experts, evidence = made("halves")
    steps = 2
    expected = world.mixed(
        lambda block: enumeration.ancestral_law(enumeration.World(block), enumeration.single(), steps)
    )
    drawn = sample(experts, evidence, empty(20_000), reveal=Ancestral(steps), temperature=1.0, seed=17)
    assert_drawn_from(drawn.x_0, expected)
    assert tv(expected, world.mixed()) > 0.02  # few steps cost exactness, as they do an expert alone


PARALLEL: list[tuple[RevealRule, Choose]] = [
    (ByConfidence(CELLS), surest_first(enumeration.World(P_1, P_2, P_3), CELLS)),
    (ByConfidence(2), surest_first(enumeration.World(P_1, P_2, P_3), 2)),
    (InTurn([[0, 1, 3], [2]]), in_turn([[0, 1, 3], [2]])),
]


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("number", range(len(PARALLEL)))
@pytest.mark.parametrize("labels", [(0, 0, 1, 1), (3, 0, 3, 3), (0, 0, 0, 0), (2, 1, 0, 3)])
def test_15_any_experts_follow_the_recursion(labels: tuple[int, ...], number: int, tau: float) -> None:
    rule, choose = PARALLEL[number]
    world = enumeration.World(P_1, P_2, P_3)
    experts = [TabularExpert(torch.from_numpy(table)) for table in (P_1, P_2, P_3)]
    omega, bias, T = [1.0, 0.5, 2.0], [0.3, -0.2, 0.0], 1.7
    given = torch.from_numpy(np.random.default_rng(15).normal(size=(3, 1, CELLS)))
    evidence = Evidence(torch.tensor(labels), temperature=T, weights=omega, bias=bias, evidence=given)
    found = law(experts, evidence, reveal=rule, temperature=tau)
    expected = evidence_law(world, labels, omega, choose, T=T, bias=bias, tau=tau, given=given[:, 0].tolist())
    assert tv(found, expected) < ROUNDING


def test_15_one_factor_is_superdiff_and_none_the_mixture() -> None:
    omega = [0.3, 0.7]
    one = Evidence(whole(CELLS), weights=omega)
    for steps in (1, 2, CELLS):
        expected = law(EXPERTS, SuperDiff(omega), reveal=ByConfidence(steps))
        for evidence in (one, Evidence(weights=omega)):
            assert tv(law(EXPERTS, evidence, reveal=ByConfidence(steps)), expected) < 1e-15
    options = {"reveal": ByConfidence(2), "temperature": 1.0, "seed": 3}
    drawn = sample(EXPERTS, one, empty(2000), **options)
    assert torch.equal(drawn.x_0, sample(EXPERTS, SuperDiff(omega), empty(2000), **options).x_0)

    said = torch.stack([expert.log_probs(STATES) for expert in EXPERTS])
    start = SamplerState.begin(STATES, MASK, 2)  # every partial state, all of it given: nothing is known
    mixed = Mixture(omega)(said, start).log_probs
    for labels in (whole(CELLS), pixels(CELLS), torch.tensor([2, 1, 1, 2])):
        unknowing = Evidence(labels, weights=omega)(said, start)
        assert (unknowing.log_probs.exp() - mixed.exp()).abs().max() < 1e-15
    pixel = law(EXPERTS, Evidence(pixels(CELLS), weights=omega))
    assert tv(pixel, law(EXPERTS, Mixture(omega))) < 1e-15


@pytest.mark.parametrize("beta", [(1.0, 1.0), (0.5, 0.5), (2.0, 1.0)])
def test_15_particles_may_be_proposed_by_evidence(beta: tuple[float, float]) -> None:
    target = P_1 ** beta[0] * P_2 ** beta[1]
    for labels in ((0, 0, 1, 1), (0, 0, 0, 0), (0, 1, 2, 3)):
        evidence = Evidence(torch.tensor(labels), weights=[0.4, 0.6])
        for tau in (1.0, 0.7):
            found = exact_law(EXPERTS, rne(beta, evidence), CELLS, temperature=tau)
            assert tv(found.distribution(weighted=True).numpy(), normalised(target)) < ROUNDING
            assert float((found.log_prob + found.log_w).exp().sum()) == pytest.approx(
                target.sum(), abs=ROUNDING
            )
        # several cells a step: in a fixed order no proposal changes what the weights amount to
        rule = InTurn([[0, 1, 2], [3]])
        found = exact_law(EXPERTS, Corrected(evidence, beta), CELLS, reveal=rule)
        other = exact_law(EXPERTS, rne(beta), CELLS, reveal=rule)
        assert (
            tv(found.distribution(weighted=True).numpy(), other.distribution(weighted=True).numpy())
            < ROUNDING
        )
