"""Exact laws against the oracle's recursion, for every composition it knows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import feynman_kac, rne
from factordiff.composition.factors import rows
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.composition.superdiff import SuperDiff
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByMargin, Repaired
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.orders import InBlocks
from factordiff.sampling.reveal import Ancestral, ByConfidence
from factordiff.toy.law import exact_law, total_variation
from tests import enumeration, oracle
from tests.toy import CELLS, EXPERTS, P_1, P_2, P_3, WORLD, close

EVEN = [0.5, 0.5]
COMPOSED: dict[str, tuple[Composition, enumeration.Compose]] = {
    "single": (Single(1), enumeration.single(1)),
    "mixture": (Mixture([0.2, 0.8]), enumeration.mixed([0.2, 0.8])),
    "product": (Product([0.7, 1.6]), enumeration.multiplied([0.7, 1.6])),
    "geometric-mean": (GeometricMean(), enumeration.multiplied(EVEN)),
    "routing": (Routing(), enumeration.routed([1.0, 1.0])),
    "rows": (Routing(rows(2, 2), [1.0, 0.5], "min"), enumeration.routed([1.0, 0.5], [0, 0, 1, 1], "min")),
}


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("method", COMPOSED)
def test_laws_are_the_recursion(method: str, steps: int, tau: float) -> None:
    composition, compose = COMPOSED[method]
    law = exact_law(EXPERTS, composition, CELLS, reveal=ByConfidence(steps), temperature=tau)
    expected, _ = enumeration.confidence_law(WORLD, compose, steps, tau)
    assert enumeration.tv(law.distribution().numpy(), expected) < 1e-12
    assert (law.log_w == 0).all()


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("steps", [2, 4])
def test_weighted_laws_are_the_recursion(steps: int, tau: float) -> None:
    beta = [1.2, 0.4]
    for composition, compose in (
        (feynman_kac(beta), enumeration.multiplied(beta)),
        (rne(beta), enumeration.mixed(EVEN)),
    ):
        law = exact_law(EXPERTS, composition, CELLS, reveal=ByConfidence(steps), temperature=tau)
        _, weighted = enumeration.confidence_law(WORLD, compose, steps, tau, beta=beta)
        assert close(law.distribution(weighted=True), weighted / weighted.sum())


def test_one_speaker_per_step() -> None:
    law = exact_law(EXPERTS, SuperDiff(), CELLS, reveal=ByConfidence(2), temperature=0.5)
    expected, _ = enumeration.confidence_law(
        WORLD,
        enumeration.superdiff(EVEN),
        2,
        0.5,
        kappa=lambda ell: oracle.superdiff_kappa(ell, 1.0, [0.0, 0.0], EVEN),
    )
    assert close(law.distribution(), expected)


def test_three_experts_one_cell_and_forbidden_values() -> None:
    three = [TabularExpert(torch.from_numpy(table)) for table in (P_1, P_2, P_3)]
    world = enumeration.World(P_1, P_2, P_3)
    law = exact_law(three, Mixture(), CELLS)
    assert close(law.distribution(), enumeration.confidence_law(world, enumeration.mixed([1 / 3] * 3))[0])
    coin = TabularExpert(torch.tensor([0.25, 0.0, 0.75]))
    assert close(exact_law([coin], Single(), 1).distribution(), [0.25, 0.0, 0.75])


def test_from_a_start_an_expert_alone_is_its_conditional() -> None:
    found = exact_law(EXPERTS, Single(), CELLS, start=torch.tensor([3, 1, 3, 0])).distribution().numpy()
    expected = np.zeros_like(P_1)
    expected[:, 1, :, 0] = P_1[:, 1, :, 0] / P_1[:, 1, :, 0].sum()
    assert close(found, expected)
    full = exact_law(EXPERTS, Single(), CELLS, start=torch.tensor([2, 1, 0, 0]))
    assert full.x_0.tolist() == [[2, 1, 0, 0]]


def test_total_variation() -> None:
    one, other = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.0, 0.5, 0.5])
    assert total_variation(one, other) == pytest.approx(0.5)
    assert total_variation(one, one) == 0
    random = np.random.default_rng(0).dirichlet(np.ones(6), size=2)
    assert total_variation(*map(torch.from_numpy, random)) == pytest.approx(enumeration.tv(*random))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"reveal": Ancestral(4)}, "reveal: expected a rule that is not random, got Ancestral"),
        (
            {"reveal": InBlocks(Ancestral(4))},
            r"reveal: expected a rule that is not random, got InBlocks\(rule=Anc",
        ),
        ({"reveal": ByBlock(4, 4, "random")}, "reveal: expected a rule that is not random, got ByBlock"),
        (
            {"reveal": Repaired(ByMargin(0.3))},
            "reveal: expected a rule that takes no cell back, got Repaired",
        ),
        ({"start": torch.tensor([0, 3])}, r"start: expected 4 tokens, one per cell, got shape \(2,\)"),
        ({"start": torch.tensor([0, 3, 4, 3])}, r"x_t: expected values 0 \.\. 2 or the mask 3, got 0 \.\. 4"),
        ({"temperature": 0.0}, "temperature: expected a finite positive number, got 0.0"),
        ({"temperature": float("nan")}, "temperature: expected a finite positive number, got nan"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(options: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        exact_law(EXPERTS, Single(), CELLS, **options)


def test_worlds_too_large_and_no_experts_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"cells: .*too many"):
        exact_law(EXPERTS, Single(), 40)
    with pytest.raises(InvalidInput, match="experts: expected at least one"):
        exact_law([], Single(), 4)
