"""Whether a router is needed: the cycle says yes, experts that agree say no."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff import FittingData, Vocabulary, compose
from factordiff.composition.learned import Learned
from factordiff.errors import InvalidInput
from factordiff.fitting import diagnosis
from factordiff.fitting.diagnosis import Diagnosis
from factordiff.fitting.predictions import RATES
from factordiff.fitting.router_fit import FitSettings
from factordiff.report.diagnosis_chart import picture
from factordiff.toy.painting import IndependentCells
from tests.fitting.worlds import Said, cyclic, halves


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


def test_a_rate_that_hid_nothing_is_left_out() -> None:
    """Two cells in all: what share of none is right is no number."""
    said = torch.log_softmax(torch.arange(12.0).sin().view(2, 2, 1, 3), -1)
    found = compose([Said(0), Said(1)]).diagnose((torch.tensor([[0], [2]]), said))
    assert found.rates[0] == 1.0
    assert len(found.rates) < len(RATES)
    for one in found.findings:
        assert len(one.by_rate) == len(found.rates)
        assert all(0 <= share <= 1 for share in one.by_rate)


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


class Owner:
    """Right in its own part of a line and wrong elsewhere, as sure of the one as of the other."""

    vocabulary = Vocabulary(4)

    def __init__(self, home: Tensor, shift: int) -> None:
        self.home, self.shift = home, shift

    def encode(self, condition: Tensor) -> Tensor:
        return condition

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        cell = torch.arange(x_t.shape[1])
        wrong = (encoded + 1 + (encoded.sum(1, keepdim=True) + cell * self.shift) % 3) % 4
        said = torch.where(self.home, encoded, wrong)
        return torch.nn.functional.one_hot(said, 4).mul(0.6).add(0.1).log()


def test_owners_by_place_need_a_router_that_sees_places() -> None:
    """Sureness says nothing: a small router is at chance, and 'no router' would be the wrong advice."""
    home = torch.arange(8) < 4
    answers = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (48, 8)))
    team = compose({"left": Owner(home, 1), "right": Owner(~home, 2)})
    found = team.diagnose(FittingData(answers, answers))
    assert found["by place"].cells == found["oracle"].cells == 1.0
    assert found["learned"].cells < 0.7
    assert not found.needs_router
    assert "a router that sees where a cell lies (factordiff fit --kind neighbourhood)" in found.advice
    fitted = team.fit(FittingData(answers, answers), kind="neighbourhood", steps=120)
    assert fitted.report is not None
    assert fitted.report.best.score is not None
    assert fitted.report.best.score.cells > 0.95  # what was advised does it


def test_owners_by_place_are_chosen_on_other_items() -> None:
    """Two experts that guess: the better of each place on the same items would seem to know something."""
    random = np.random.default_rng(0)
    said = torch.from_numpy(random.integers(0, 4, (40, 2, 30)))
    answers = torch.from_numpy(random.integers(0, 4, (40, 30)))
    chances = torch.nn.functional.one_hot(said, 4).mul(0.6).add(0.1).log()
    found = compose([Said(0, 4), Said(1, 4)]).diagnose(FittingData(answers, chances))
    of_same = (said == answers[:, None]).double().mean(0).max(0).values.mean()
    assert of_same > 0.28
    assert found["by place"].by_rate[0] < 0.27
    assert "where a cell lies" not in found.advice


def test_the_small_router_is_measured_on_other_items(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    experts, data = halves(9)
    fitted_on: dict[int, set[int]] = {}
    measured: list[int] = []
    fit, measure = diagnosis.fit_router, diagnosis._grid_of_right

    def fitting(here: Any, held: Any, *given: Any, **named: Any) -> Any:
        found = fit(here, held, *given, **named)
        fitted_on[id(found.router)] = {*here.item.tolist(), *held.item.tolist()}
        return found

    def measuring(predictions: Any, composition: Any) -> Tensor:
        if isinstance(composition, Learned):
            items = predictions.item.unique().tolist()
            assert not fitted_on[id(composition.router)] & set(items)
            measured.extend(items)
        return measure(predictions, composition)

    monkeypatch.setattr(diagnosis, "fit_router", fitting)
    monkeypatch.setattr(diagnosis, "_grid_of_right", measuring)
    compose(experts).diagnose(data)
    assert sorted(measured) == list(range(9))  # each of them once


def test_it_can_be_drawn(of_cycle: tuple[Diagnosis, list[str]], of_halves: Diagnosis) -> None:
    for found in (of_cycle[0], of_halves):
        assert picture(found).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("refusal", "change"),
    [
        (
            "at least two items, to fit a router on one and measure it on the other, got 1",
            {"answers": [[1, 2]]},
        ),
        (r"owner: expected the number of an expert, 0 \.\. 1, .*got -1 \.\. 0", {"owner": [[0, 0], [0, -1]]}),
        (r"owner: .*got 0 \.\. 2; leave cells without an owner out", {"owner": [[0, 0], [2, 1]]}),
        ("expected some asked cells, got none in 2 items", {"asked": [[False, False], [False, False]]}),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(refusal: str, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=refusal):
        compose([Said(0), Said(1)]).diagnose(FittingData(**{"answers": [[1, 2], [0, 1]], **change}))


def test_cells_that_are_not_asked_need_no_owner() -> None:
    answers = torch.tensor([[1, 2], [0, 1]])
    said = torch.full((2, 2, 2, 3), 1 / 3).log()
    owner, asked = torch.tensor([[0, -1], [1, -1]]), torch.tensor([[True, False], [True, False]])
    found = compose([Said(0), Said(1)]).diagnose(FittingData(answers, said, asked, owner=owner))
    assert found.items == 2


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
