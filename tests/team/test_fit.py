"""Teams are fitted: a router or numbers, with a report, the same again, and nothing lost by an interruption."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff import Condition, FittingData, compose, rne
from factordiff.composition.learned import Learned
from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_store import load_router, save_router
from factordiff.errors import CheckpointError, InvalidInput
from factordiff.fitting.data import digest
from factordiff.fitting.predictions import predict
from factordiff.fitting.router_fit import held_out_loss
from factordiff.fitting.search import FITTABLE
from factordiff.sampling.reveal import ByConfidence
from factordiff.team.team import Team
from tests.fitting.worlds import cyclic, halves
from tests.solving_experts import tiny_experts

QUICK: dict[str, Any] = {"steps": 60, "heads": ("mixture",)}


def test_a_router_of_the_cycle_answers_everything() -> None:
    experts, data = cyclic(48)
    team = compose(experts).fit(data, **QUICK)
    assert team.method == "learned"
    assert team.report is not None
    assert team.report.best.score is not None
    assert team.report.best.score.exact == 1.0
    assert team.report.held == 12
    assert team.report.items == 36
    blank = torch.full_like(data.answers, 4)
    assert torch.equal(team.sample(blank, data.condition).x_0, data.answers)


@pytest.mark.parametrize("what", [what for what in FITTABLE if what != "router"])
def test_every_number_can_be_fitted_with_the_same_budget(what: str) -> None:
    experts, data = halves(12)
    team = compose(experts).fit((data.answers, data.condition, None, data.layout), what, budget=4)
    assert team.method == FITTABLE[what].method
    assert team.report is not None
    assert team.report.held == 3  # the last quarter alone chooses
    # Past an end of what was tried half as many again; two break ties.
    assert 4 + 2 <= len(team.report.trials) <= 4 + 4 // 2 + 2
    scores = [trial.score.order for trial in team.report.trials if trial.score is not None]
    assert scores[team.report.chosen] == max(scores)
    assert dict(team.report.best.setting) == dict(team.options)
    assert team.reveal == ("exact" if what == "evidence" else "fast")


def test_no_number_helps_where_both_are_wrongly_sure() -> None:
    experts, data = halves(24)
    for what in ("weights", "exponents", "temperatures"):
        team = compose(experts).fit(data, what, budget=6)
        assert team.report is not None
        assert team.report.best.score is not None
        assert team.report.best.score.exact == 0.0
    learned = compose(experts).fit(data, **QUICK)
    assert learned.report is not None
    assert learned.report.best.score is not None
    assert learned.report.best.score.exact == 1.0


@pytest.mark.parametrize("heads", [("mixture",), ("product",), ("product", "mixture")])
def test_the_uniform_mixtures_loss_is_that_whatever_heads_are_tried(heads: tuple[str, ...]) -> None:
    experts, data = halves(16)
    team = compose(experts).fit(data, steps=5, heads=heads, measure=False)
    predictions = predict(experts, data)
    held = predictions.rows(data.kept[predictions.item].nonzero().squeeze(-1))
    uniform, geometric = (
        held_out_loss(held, Router.new(RouterConfig(2, 3, head=head, layout=data.layout)))
        for head in ("mixture", "product")
    )
    assert team.report is not None
    assert team.report.notes["loss of the uniform mixture"] == uniform
    router = team.options["router"]
    untrained = {"mixture": uniform, "product": geometric}[router.config.head]
    assert router.about["held_out_loss_untrained"] == untrained != router.about["held_out_loss_mixture"]


def test_two_fits_with_one_seed_are_one() -> None:
    experts, data = halves(16)
    one, two = (compose(experts).fit(data, measure=False, **QUICK).options["router"] for _ in range(2))
    assert torch.equal(one.vector, two.vector)


class Stopped(Exception):
    pass


def stopping(after: int) -> Any:
    calls = []

    def progress(stage: str, done: int, total: int) -> None:
        calls.append(stage)
        if len(calls) == after:
            raise Stopped

    return progress


@pytest.mark.parametrize(("what", "after"), [("router", 1), ("router", 40), ("weights", 3)])
def test_an_interrupted_fit_goes_on(what: str, after: int, tmp_path: Path) -> None:
    experts, data = halves(16)
    options = QUICK if what == "router" else {"budget": 4}
    whole = compose(experts).fit(data, what, **options)
    with pytest.raises(Stopped):
        compose(experts).fit(data, what, folder=tmp_path / "f", on_progress=stopping(after), **options)
    again = compose(experts).fit(data, what, folder=tmp_path / "f", **options)
    assert whole.report is not None
    assert again.report is not None
    assert again.report.trials == whole.report.trials
    if what == "router":
        assert torch.equal(again.options["router"].vector, whole.options["router"].vector)
    with pytest.raises(CheckpointError, match="an interrupted fit lies here with seed 0, now it is 1"):
        compose(experts).fit(data, what, folder=tmp_path / "f", seed=1, **options)


@pytest.mark.parametrize("what", ["router", "evidence"])
def test_what_was_heard_for_another_fit_is_not_taken_for_this_ones(what: str, tmp_path: Path) -> None:
    experts, data = halves(16)
    options = QUICK if what == "router" else {"budget": 2}

    def team(reveal: Any = "exact", factors: tuple[int, ...] = (0, 1) * 4) -> Team:
        return compose(experts, "evidence", reveal=reveal, factors=list(factors))

    others = {
        "condition": (team(), dataclasses.replace(data, condition=3 - data.condition)),
        "layout": (team(), dataclasses.replace(data, layout=(4, 2))),
        "reveal": (team(ByConfidence(2)), data),
        "options": (team(factors=(0,) * 4 + (1,) * 4), data),
    }
    if what == "router":  # how a team answers is nothing to it
        del others["reveal"], others["options"]
    with pytest.raises(Stopped):
        team().fit(data, what, folder=tmp_path, on_progress=stopping(1), **options)
    for changed, (other, its) in others.items():
        with pytest.raises(CheckpointError, match=f"an interrupted fit lies here with {changed} "):
            other.fit(its, what, folder=tmp_path, **options)
    assert team().fit(data, what, folder=tmp_path, **options).report is not None


def test_what_somebody_is_told_has_a_name() -> None:
    class Rest:
        """Of a stranger's object no more is known than its type."""

    told = {"a": torch.arange(3), "b": (1, "two", None, [2.5])}
    assert digest(told) == digest({"a": torch.arange(3), "b": (1, "two", None, [2.5])})
    assert digest(Rest()) == digest(Rest())
    changes = (
        {"a": torch.arange(3).int()},
        {"a": torch.arange(3)[None]},
        {"a": torch.tensor([0, 1, 3])},
        {"b": (1, "two", None, [2.25])},
        {"b": (1, "two", 0, [2.5])},
        {"b": (1, "two", Rest(), [2.5])},
        {"c": 0},
    )
    assert len({digest(told | change) for change in changes} | {digest(told)}) == len(changes) + 1
    grids = torch.zeros(2, 1, 4, dtype=torch.int64)
    shown = [
        Condition(torch.tensor([[0, 1, 2, cell]] * 2), grids, grids, torch.ones(2, 1) > 0) for cell in (3, 4)
    ]
    assert digest(shown[0]) != digest(shown[1])


@pytest.mark.parametrize("what", ["router", "weights"])
@pytest.mark.parametrize(("held", "sides"), [(True, "got 0 and 8"), (False, "got 8 and 0")])
def test_without_items_to_fit_on_or_to_choose_by_nobody_is_asked(
    what: str, held: bool, sides: str, tmp_path: Path
) -> None:
    experts, data = halves(8)
    data = dataclasses.replace(data, held=torch.full((8,), held))
    with pytest.raises(InvalidInput, match=f"items to fit on and others to choose by, {sides}"):
        compose(experts).fit(data, what, folder=tmp_path / "f")
    assert experts[0].passes == 0
    assert not (tmp_path / "f").exists()


def test_data_without_a_layout_have_the_teams() -> None:
    experts, data = halves(12)
    team = compose(experts, layout=(2, 4))
    for given, layout in (
        ((data.answers, data.condition), (2, 4)),
        ((data.answers, data.condition, None, (4, 2)), (4, 2)),
    ):
        fitted = team.fit(given, kind="neighbourhood", steps=2, measure=False)
        assert fitted.options["router"].config.layout == layout
    assert team.diagnose((data.answers, data.condition)).layout == (2, 4)


@pytest.mark.parametrize("what", ["router", "weights"])
def test_answers_that_are_hidden_are_refused(what: str) -> None:
    experts, data = halves(12)
    answers = data.answers.clone()
    answers[0, 0] = 3
    with pytest.raises(InvalidInput, match="data: expected whole answers, some cells are masked"):
        compose(experts).fit((answers, data.condition), what)


@pytest.mark.usefixtures("untyped")
def test_what_makes_no_sense_is_refused() -> None:
    experts, data = halves(8)
    for arguments, sentence in (
        ((data, "luck"), r"what: expected one of router.*\(one of learned, routing, .*\), got 'luck'"),
        ((None,), "data: expected FittingData or"),
        ((torch.zeros(0, 8, dtype=torch.int64),), "expected some items to fit on, got none"),
        (((data.answers,) * 7,), "data: expected FittingData or .*, got 7 things"),
        ((data, ["router"]), "what: expected one of router"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            compose(experts).fit(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="sharpness: a fit does not take it"):
        compose(experts).fit(data, sharpness=1)
    for options, sentence in (
        ({"steps": 0}, "steps: expected a whole number of at least 1, got 0"),
        ({"steps": 2.5}, "steps: expected a whole number of at least 1, got 2.5"),
        ({"heads": "product"}, "heads: expected some of mixture, product in a list, got 'product'"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            compose(experts).fit(data, **options)
    for layout, sentence in ((8, "layout: expected a list of two"), ((3, 3), "expected a layout of 8 cells")):
        with pytest.raises(InvalidInput, match=sentence):
            FittingData(data.answers, layout=layout)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least two experts to choose between, got 1"):
        compose(experts[:1]).fit(data)


def fitted_folders(tmp_path: Path) -> tuple[list[str], Router]:
    """Two experts in folders, and a router that was made for them."""
    from factordiff.composition.router import RouterConfig
    from factordiff.team.router import hashes

    folders = tiny_experts(tmp_path, ("trans-color", "trans-occ"))
    router = Router.new(RouterConfig(2, 10, layout=(10, 10)))
    return folders, Router(router.config, router.vector, hashes(compose(folders)))


def test_a_team_file_knows_its_router(tmp_path: Path) -> None:
    folders, router = fitted_folders(tmp_path)
    compose(folders, "learned", router=router).save(tmp_path / "kept" / "team.json")  # only in memory
    (tmp_path / "kept").rename(tmp_path / "carried")
    carried = compose(tmp_path / "carried" / "team.json").options["router"]
    assert carried == str(tmp_path / "carried" / "team-router")
    assert torch.equal(load_router(carried).vector, router.vector)
    save_router(router, tmp_path / "mine" / "router")
    file = compose(folders, "learned", router=tmp_path / "mine" / "router").save(
        tmp_path / "mine" / "team.json"
    )
    assert json.loads(file.read_text())["options"]["router"]["folder"] == "router"
    (tmp_path / "mine").rename(tmp_path / "moved")  # the router travels with its team
    team = compose(tmp_path / "moved" / "team.json")
    assert isinstance(team, Team)
    assert team.method == "learned"
    other = Router(router.config, router.vector + 1, router.fitted_to)
    save_router(other, tmp_path / "moved" / "router")
    with pytest.raises(CheckpointError, match=r"the router in .* is another now"):
        compose(tmp_path / "moved" / "team.json")


def test_other_experts_are_refused_unless_told(tmp_path: Path) -> None:
    folders, router = fitted_folders(tmp_path)
    others = [folders[0], *tiny_experts(tmp_path / "others", ("trans-full",))]
    save_router(router, tmp_path / "router")
    compose(folders, "learned", router=tmp_path / "router")
    sentence = "fitted to trans-occ with other weights than those of trans-full"
    with pytest.raises(InvalidInput, match=sentence):
        compose(others, "learned", router=tmp_path / "router")
    for made in (Learned(router), Learned(tmp_path / "router"), rne(proposal=Learned(router))):
        with pytest.raises(InvalidInput, match=sentence):
            compose(others, made)
        compose(folders, made)
    assert len(compose(others, Learned(router, other_experts="allow"))) == 2
    told = compose(others, "learned", router=str(tmp_path / "router"), other_experts="allow")
    assert told.method_for(100).composition.router.parameters == load_router(tmp_path / "router").parameters  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match="not a router's folder"):
        compose(folders, "learned", router=tmp_path / "nothing")


def test_a_shared_router_takes_its_experts_in_any_order(tmp_path: Path) -> None:
    folders, router = fitted_folders(tmp_path)
    compose(folders[::-1], "learned", router=router)  # its weights are permuted with them: test_router
    by_place = Router.new(RouterConfig(2, 10, layout=(10, 10), bias=True))
    with pytest.raises(
        InvalidInput, match="fitted to trans-color with other weights than those of trans-occ"
    ):
        compose(folders[::-1], "learned", router=Router(by_place.config, by_place.vector, router.fitted_to))
