"""Routers fitted on three quarters of the validation queries; the head that is taken is chosen on the last quarter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.router import Kind, Router
from factordiff.composition.router_store import load_router, save_router
from factordiff.errors import InvalidInput
from factordiff.fitting.data import FittingData
from factordiff.fitting.heads import RouterWish, chosen_heads, fit_heads
from factordiff.fitting.predictions import RATES, Predictions, joined, predict
from factordiff.fitting.router_fit import Fitted
from factordiff.sampling.request import common_vocabulary
from factordiff.worlds.answering import value_of
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Answering, Setting, always
from factordiff.worlds.sides import Choose, Fit, sides

YES = {"yes": True, "no": False}


class RouterChoice(RouterWish):
    """What a router is to be, as it stands in brackets behind `fitted:learned`."""

    @classmethod
    def read(cls, options: Mapping[str, str]) -> RouterChoice:
        """The choice that was typed: `kind`, `head`, `steps`, and `evidence`, `bias`, `complement` with yes or no."""
        found: dict[str, Any] = {}
        for name, text in options.items():
            if name == "kind" and text in get_args(Kind):
                found[name] = text
            elif name == "head":
                found["heads"] = chosen_heads(text)
            elif name == "steps" and text.isdigit() and int(text) > 0:
                found[name] = int(text)
            elif name in ("evidence", "bias", "complement") and text in YES:
                found[name] = YES[text]
            else:
                raise InvalidInput(
                    f"methods: fitted:learned takes kind={'|'.join(get_args(Kind))}, head=mixture|product|both, "
                    f"steps=NUMBER, and evidence, bias, complement=yes|no, got {name}={text}"
                )
        return cls(**found)


def fit_learned(label: str, choice: RouterChoice, setting: Setting) -> Answering:
    """The method `learned` with a router that was fitted on the validation queries, and never on any other."""
    queries = setting.to_fit_on(label)
    if label in setting.notes and setting.folder is not None:
        return _answering(setting, load_router(setting.folder.router(label)))
    if len(setting.experts) < 2:
        raise InvalidInput(f"methods: {label!r} chooses between at least two experts, got 1")
    fit, choose = sides(queries)
    place, stage = setting.workplace(label), f"fitting {label.removeprefix('fitted:')}"
    heard = heard_queries(queries, fit, choose, setting, stage, None if place is None else place.folder)
    here, there = _those(heard, fit), _those(heard, choose)
    config = choice.config(len(setting.experts), heard[0].mask, setting.layout)
    fitted = fit_heads(
        here,
        there,
        config,
        choice.heads,
        steps=choice.steps,
        seed=setting.seed,
        folder=None if place is None else place.folder,
        on_step=lambda done, total: setting.tell(stage, done, total),
    )
    figures = [_figure(one, queries[choose], setting) for one in fitted]
    chosen = max(range(len(fitted)), key=lambda number: (figures[number] or 0.0, -fitted[number].loss))
    router = replace(
        fitted[chosen].router,
        fitted_to=tuple((name, None) for name in setting.names),
        about={"row": label, "queries": len(fit), "chosen on": len(choose), "steps": choice.steps},
    )
    if setting.folder is not None:
        router = save_router(router, setting.folder.router(label))
    main, value = setting.metric.main, figures[chosen]
    setting.note(
        label,
        {
            "router": {"kind": choice.kind, "head": router.config.head, "parameters": router.parameters},
            "validation": None if value is None else main.sign * value,
            "loss": {one.router.config.head: one.loss for one in fitted},
            "fitted on": len(fit),
            "chosen on": len(choose),
            "queries": len(queries),
            "runs": len(fitted),
            "edge": False,
        },
    )
    if place is not None:
        place.remove()
    return _answering(setting, router)


def heard_queries(
    queries: Queries, fit: Fit, choose: Choose, setting: Setting, stage: str, folder: Path | None = None
) -> list[Predictions]:
    """What the experts say about these queries' truth, half hidden; one `Predictions` for each length.

    Cells that a query gives are never hidden. In one pass the query's own hidden cells are what is asked, and each
    query counts alike; in the loop all shares of them are, as it meets them on its way.
    """
    experts, kept = list(setting.experts.values()), torch.cat([fit, choose]).sort().values
    mask, one_pass = common_vocabulary(experts).mask, setting.metric.mode == "one-pass"
    some = queries[kept]
    by_length: dict[int, list[Predictions]] = defaultdict(list)
    done = 0
    for number, index in enumerate(some.batches(setting.batch, set())):
        part = some[index].cut()
        data = FittingData(part.x_0, part.condition, part.hidden(mask), setting.layout)
        heard = predict(
            experts,
            data.to(torch.device(setting.device)),
            rates=(1.0,) if one_pass else RATES,
            seed=setting.seed,
            batch=len(index),
            ids=kept[index],
            folder=_made(folder, number),
        )
        if one_pass:
            share = heard.asked.float().mean(-1).clamp(min=1 / heard.asked.shape[1])
            heard = replace(heard, rate=share)
        by_length[part.x_0.shape[1]].append(heard)
        done += len(index)
        setting.tell(f"{stage}: asking the experts", done, len(some))
    return [joined(parts) for parts in by_length.values()]


def _made(folder: Path | None, number: int) -> Path | None:
    if folder is None:
        return None
    of_batch = folder / f"batch-{number:05d}"
    of_batch.mkdir(parents=True, exist_ok=True)
    return of_batch


def _those(heard: list[Predictions], places: Int[Tensor, " some"]) -> list[Predictions]:
    """The rows of these queries alone."""
    found = []
    for one in heard:
        rows = torch.isin(one.item, places.to(one.item.device)).nonzero().squeeze(-1)
        if len(rows):
            found.append(one.rows(rows))
    return found


def _figure(fitted: Fitted, queries: Queries, setting: Setting) -> float | None:
    """The world's figure of the queries that choose, the more the better; none where it is a distance to the truth."""
    if setting.metric.mode == "enumerated":
        return None
    return setting.metric.main.sign * value_of(_answering(setting, fitted.router), queries, setting)


def _answering(setting: Setting, router: Router) -> Answering:
    return always(setting.team("learned", router=router))
