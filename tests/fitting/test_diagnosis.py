"""Whether a router is needed: the cycle says yes, experts that agree say no."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from factordiff import compose
from factordiff.errors import InvalidInput
from factordiff.fitting import diagnosis
from factordiff.fitting.diagnosis import Diagnosis
from factordiff.fitting.router_fit import FitSettings
from factordiff.report.diagnosis_chart import picture
from factordiff.toy.painting import IndependentCells
from tests.fitting.worlds import cyclic, halves


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Toy worlds need few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnosis, "QUICK", FitSettings(steps=60, batch=32, check_every=20, rate=3e-2))
        yield


@pytest.fixture(scope="module")
def of_cycle(quick: None) -> tuple[Diagnosis, list[str]]:
    experts, data = cyclic(32)
    stages: list[str] = []
    found = compose(experts).diagnose(data, on_progress=lambda stage, done, total: stages.append(stage))
    return found, stages


@pytest.fixture(scope="module")
def of_halves(quick: None) -> Diagnosis:
    experts, data = halves(16)
    return compose(experts).diagnose(data)


def test_the_cycle_needs_a_router(of_cycle: tuple[Diagnosis, list[str]]) -> None:
    """Best scalar 2 of 3, confidence 0 of 3, learned and told 3 of 3."""
    found, stages = of_cycle
    at = {one.name: one.by_rate[0] for one in found.findings}  # with everything hidden
    assert at["best product"] == pytest.approx(2 / 3)
    assert at["best mixture"] == pytest.approx(2 / 3)
    assert at["confidence"] == 0.0
    assert at["learned"] == at["told"] == at["oracle"] == 1.0
    assert found["learned"].cells == 1.0
    assert found.needs_router
    assert found.gain == pytest.approx(1 - found.best_without.cells)
    assert "you need a router" in found.advice
    assert repr(found).startswith("Diagnosis(expert 1 + expert 2 + expert 3, 32 items: The best without")
    assert set(stages) == {"asking the experts", "comparing"}


def test_experts_that_agree_do_not() -> None:
    experts, data = halves(16)
    found = compose([experts[0], experts[0]]).diagnose(data)
    assert not found.needs_router
    assert "there is nothing to choose" in found.advice
    assert found["learned"].cells == found["oracle"].cells == found["expert 1"].cells


def test_it_says_where_experts_are_wrongly_sure(
    of_cycle: tuple[Diagnosis, list[str]], of_halves: Diagnosis
) -> None:
    assert of_halves.wrongly_sure.shape == (2, 8)
    assert (of_halves.wrongly_sure == 0).all()  # a claim of 0.9 has a margin of 0.85
    sure = of_cycle[0].wrongly_sure
    assert [int(row.argmax()) for row in sure] == [1, 2, 0]  # each at the next one's cell
    assert sure.max() == 1.0


def test_it_can_be_drawn(of_cycle: tuple[Diagnosis, list[str]], of_halves: Diagnosis) -> None:
    for found in (of_cycle[0], of_halves):
        assert picture(found).startswith(b"\x89PNG")


def test_one_expert_has_nobody_to_be_compared_with() -> None:
    experts, data = halves(8)
    with pytest.raises(InvalidInput, match="expected at least two experts to compare, got 1"):
        compose(experts[:1]).diagnose(data)


def test_the_best_temperatures_are_no_worse_than_none_where_experts_tie(quick: None) -> None:
    """The second is as sure of other values: every cell is a tie, which the first wins, and the first is right."""
    table = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(10), size=40)).log()
    experts = [IndependentCells(table), IndependentCells(table.flip(-1))]
    found = compose(experts).diagnose(table.argmax(-1).expand(6, -1))
    assert found["confidence"].cells == found["best confidence"].cells == 1.0
