"""A team's numbers or its router, fitted on held-out data; the same number of trials for every method."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from factordiff.composition.method import spec
from factordiff.composition.router import Router
from factordiff.errors import InvalidInput
from factordiff.fitting.data import FittingData, as_data, digest
from factordiff.fitting.fit_folder import FitFolder
from factordiff.fitting.fitted_mixture import mixture_router, mixture_weights
from factordiff.fitting.heads import RouterWish, fit_from, fit_heads
from factordiff.fitting.predictions import check_answers, predict
from factordiff.fitting.report import FitReport, Score, Trial
from factordiff.fitting.router_fit import held_out_loss
from factordiff.fitting.search import Fittable, fittable, search, tie_breaks
from factordiff.locks import Lock
from factordiff.sampling.reveal import RevealRule
from factordiff.team.router import hashes

if TYPE_CHECKING:
    from factordiff.team.team import Team

Progress = Callable[[str, int, int], None]  # what is under way, how much of it is done, of how much
TOGETHER = 48  # items that are answered together


@dataclass(frozen=True)
class FitOptions(RouterWish):
    """How a fit is done: what a router is to be, and of every fit how much is tried, and with which seed."""

    budget: int = 8  # settings that are tried on the held-out items
    seed: int = 0
    measure: bool = True  # whether the held-out items are answered with the chosen router too


def fit_team(
    team: Team,
    data: FittingData,
    what: str,
    options: FitOptions,
    folder: Path | None = None,
    on_progress: Progress | None = None,
) -> Team:
    """The team with what was fitted, and a report of what was tried (`Team.report`)."""
    if len(team) < 2:
        raise InvalidInput(f"fit: expected at least two experts to choose between, got {len(team)}")
    data.sides()  # nobody is asked, and no folder made, where there is nothing to fit on or to choose by
    wanted, begun = fittable(what), time.monotonic()
    tell = on_progress or (lambda stage, done, total: None)
    identity = {
        "what": wanted.what,
        "experts": [list(one) for one in hashes(team)],
        "data": data.sha256(),
        "condition": digest(data.condition),
        "layout": data.layout,
        **{name: value for name, value in vars(options).items() if name != "measure"},
        **({} if wanted.what == "router" else _answering(team, wanted.method)),
    }
    with nullcontext() if folder is None else Lock.of_folder(folder):
        place = None if folder is None else FitFolder(folder, identity)
        fitted = (_router if wanted.what == "router" else _numbers)(team, data, wanted, options, place, tell)
    assert fitted.report is not None
    return replace(fitted, report=replace(fitted.report, seconds=time.monotonic() - begun))


def _answering(team: Team, method: str) -> dict[str, Any]:
    """What of a team decides how its trials go, beside the numbers that are tried."""
    kept = team.options if team.method == method else {}
    return {"reveal": _spelled(team.reveal), "options": {name: _spelled(kept[name]) for name in kept}}


def _spelled(value: Any) -> Any:
    """A value as a person reads it, or, where that does not tell it, a name of what it is made of."""
    if isinstance(value, RevealRule) and " at 0x" not in repr(value):
        return repr(value)
    return value if isinstance(value, str | int | float | tuple) else digest(value)


def data_of(team: Team, given: Any) -> FittingData:
    """The data where the team is, with its layout unless they have one; what its experts do not know is refused."""
    data = as_data(given).to(team.device)
    check_answers(data, team.experts)
    return data if data.layout is not None else replace(data, layout=team.layout)


def _router(
    team: Team, data: FittingData, wanted: Fittable, how: FitOptions, place: FitFolder | None, tell: Progress
) -> Team:
    predictions = predict(
        team.experts,
        data,
        seed=how.seed,
        folder=None if place is None else place.folder,
        on_pass=lambda done, total: tell("asking the experts", done, total),
    )
    kept = data.kept[predictions.item]
    here, there = (predictions.rows(side.nonzero().squeeze(-1)) for side in (~kept, kept))
    config = how.config(len(team), predictions.mask, data.layout)
    once: dict[str, Any] = {
        "steps": how.steps,
        "seed": how.seed,
        "folder": None if place is None else place.folder,
    }
    fitted = fit_heads(
        here, there, config, how.heads, on_step=lambda done, total: tell("fitting", done, total), **once
    )
    trials = [Trial({"kind": how.kind, "head": one.router.config.head}, loss=one.loss) for one in fitted]
    uniform = held_out_loss(there, Router.new(replace(config, head="mixture")))
    mixture = mixture_router(config, mixture_weights(here), how.seed)
    one_number = held_out_loss(there, mixture)
    if (
        "mixture" in how.heads and min(one.loss for one in fitted) > one_number
    ):  # only their names tell experts apart
        again = fit_from(
            mixture, here, there, on_step=lambda d, t: tell("fitting from the best mixture", d, t), **once
        )
        fitted.append(again)
        trials.append(
            Trial({"kind": how.kind, "head": "mixture", "begun as": "best mixture"}, loss=again.loss)
        )
    chosen = min(range(len(trials)), key=lambda number: fitted[number].loss)
    untrained = held_out_loss(there, Router.new(fitted[chosen].router.config))  # of its own head
    router = replace(
        fitted[chosen].router,
        fitted_to=hashes(team),
        about={**_about(data, how, trials[chosen], untrained), "held_out_loss_mixture": one_number},
    )
    together = _with(team, "learned", {"router": router})
    if how.measure:
        score = answered(
            together, data.sides()[1], how.seed, lambda d, t: tell("answering held-out items", d, t)
        )
        trials[chosen] = replace(trials[chosen], score=score)
    report = FitReport(
        "router", "learned", tuple(trials), chosen, int((~data.kept).sum()), int(data.kept.sum()),
        notes={
            "loss of the uniform mixture": uniform,
            "loss of the fitted mixture": one_number,
            "parameters": router.parameters,
        },
    )  # fmt: skip
    return replace(together, report=report)


def _about(data: FittingData, how: FitOptions, trial: Trial, untrained: float) -> dict[str, Any]:
    return {
        "items": int((~data.kept).sum()),
        "held": int(data.kept.sum()),
        "data": data.sha256(),
        "steps": how.steps,
        "seed": how.seed,
        "held_out_loss": trial.loss,
        "held_out_loss_untrained": untrained,
    }


def _numbers(
    team: Team, data: FittingData, wanted: Fittable, how: FitOptions, place: FitFolder | None, tell: Progress
) -> Team:
    known = {key: Score(**one) for key, one in ({} if place is None else place.trials()).items()}
    held = data.sides()[1]
    tried = 0

    def score(setting: dict[str, Any]) -> Score:
        nonlocal tried
        key = json.dumps(setting, sort_keys=True)
        if key not in known:
            before, total = tried * len(held), max(how.budget, tried + 1) * len(held)
            known[key] = answered(
                _with(team, wanted.method, setting),
                held,
                how.seed,
                lambda done, _: tell("answering held-out items", before + done, total),
            )
            if place is not None:
                place.keep({key: asdict(one) for key, one in known.items()})
        tried += 1
        tell("answering held-out items", tried * len(held), max(how.budget, tried) * len(held))
        return known[key]

    scores: list[Score] = []

    def value(setting: dict[str, Any]) -> tuple[float, float]:
        scores.append(score(setting))
        return scores[-1].order

    experts = len(team)
    found = search(
        wanted.coordinates(experts),
        experts,
        how.budget,
        value,
        beyond=how.budget // 2,
        ties=tie_breaks(experts),
    )
    trials = tuple(Trial(*one) for one in zip(found.settings, scores, strict=True))
    report = FitReport(wanted.what, wanted.method, trials, found.chosen, 0, len(held), edge=found.edge)
    return replace(_with(team, wanted.method, found.best), report=report)


def _with(team: Team, method: str, options: dict[str, Any]) -> Team:
    """The team with another method; what was set about its own method and is an option of the other too stays."""
    declared = spec(method)
    kept = {
        name: value for name, value in team.options.items() if method == team.method and name not in options
    }
    usual = spec(team.method).reveal if isinstance(team.method, str) else "fast"
    checked = declared.check({**kept, **options}, team.names)
    reveal = declared.reveal if team.reveal == usual else team.reveal
    return replace(team, method=method, options=checked, reveal=reveal)


def answered(
    team: Team, data: FittingData, seed: int = 0, on_item: Callable[[int, int], None] | None = None
) -> Score:
    """Fill every item's asked cells, and hold the answers against the right ones."""
    laid = team if team.layout is not None else replace(team, layout=data.layout)
    mask = team.experts[0].vocabulary.mask
    exact, right, cells, passes = 0, 0, 0, 0
    for items in torch.arange(len(data), device=data.answers.device).split(TOGETHER):
        part = data.part(items)
        asked = part.open_cells
        x_t = torch.where(asked, mask, part.answers)
        samples = laid.sample(x_t, part.condition, seed=seed, items=items)
        same = samples.x_0.to(asked.device) == part.answers
        exact += int((same | ~asked).all(-1).sum())
        right, cells = right + int((same & asked).sum()), cells + int(asked.sum())
        passes += int(samples.executed_passes.sum())
        if on_item is not None:
            on_item(int(items[-1]) + 1, len(data))
    return Score(exact / len(data), right / max(cells, 1), passes)


def fit_options(given: Mapping[str, Any]) -> FitOptions:
    """The options that were given, by name; unknown ones are refused."""
    known = [one.name for one in fields(FitOptions)]
    for name in given:
        if name not in known:
            raise InvalidInput(f"{name}: a fit does not take it; expected some of {', '.join(known)}")
    return FitOptions(**given)
