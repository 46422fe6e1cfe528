"""A router for a group of experts, fitted on 30 of each task's 40 validation instances; the other ten choose its head.

It lies beside the records, and its row names its weights, as it names the experts'. The test list is on neither side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import SIDE
from factordiff.arc.splits import HELD
from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_store import load_router, save_router
from factordiff.errors import DataError
from factordiff.experiments.pairs import ExpertGroup
from factordiff.experiments.runner import Runner, router_folder
from factordiff.experts.registry import CONFIG
from factordiff.fitting.data import FittingData
from factordiff.fitting.heads import HEADS, fit_heads
from factordiff.fitting.predictions import predict
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec

KIND: Literal["shared"] = "shared"  # one scorer for all experts, under a thousand parameters
STEPS = 600
FEWEST = 8  # queries: both sides must have some
TOGETHER = 240  # queries that the experts are asked about at once


def learned_row(group: ExpertGroup, queries: int | None = None, split: str = "test") -> RunSpec:
    """The row of a group's learned router."""
    return RunSpec(group.experts, "learned", split, queries=queries, others=(("router", KIND),))


def sides(queries: EvaluationSet) -> tuple[Tensor, Tensor]:
    """The places of the queries that fit and of those that choose, told apart by instance; of a few, every fourth."""
    chooses = queries.numbers >= HELD.start
    if not bool(chooses.any()):
        chooses = torch.arange(len(queries), device=chooses.device) % 4 == 3
    return (~chooses).nonzero().squeeze(-1), chooses.nonzero().squeeze(-1)


def fit_learned_row(runner: Runner, group: ExpertGroup) -> None:
    """Fit the router unless it is there, on the first machine; one of other weights is refused and left alone."""
    if runner.late() or not runner.context.machines.writes or not runner.planned([learned_row(group)]):
        return
    folder = router_folder(runner.context.folder, learned_row(group))
    known = [runner.experts(name) for name in group.experts]
    fitted_to = tuple((name, one.sha256) for name, one in zip(group.experts, known, strict=True))
    if (folder / CONFIG).exists():
        if load_router(folder).fitted_to != fitted_to:
            raise DataError(f"{folder}: fitted to other weights; use another folder with --out")
        return
    queries = runner.queries("validation")
    queries = queries if runner.limit is None else queries.first(max(runner.limit, FEWEST))
    fit, choose = sides(queries)
    data = FittingData(queries.x_0, queries.condition(), layout=(SIDE, SIDE))
    runner.callbacks.row(f"fitting a router for {group.name}", len(queries))
    heard = predict([one.expert for one in known], data, seed=runner.settings.seed, batch=TOGETHER)
    here, there = (heard.rows(torch.isin(heard.item, side).nonzero().squeeze(-1)) for side in (fit, choose))
    config = RouterConfig(len(group.experts), heard.mask, KIND, layout=(SIDE, SIDE))
    found = fit_heads(here, there, config, HEADS["both"], steps=STEPS, seed=runner.settings.seed)
    best = min(found, key=lambda one: one.loss)
    about = {"queries": len(fit), "chosen on": len(choose), "steps": STEPS, "held_out_loss": best.loss}
    save_router(replace(best.router, fitted_to=fitted_to, about=about), folder)


def fitted_router(archive: RecordFolder, group: ExpertGroup) -> Router | None:
    """The router that was fitted, if there is one."""
    folder = router_folder(archive.folder, learned_row(group))
    return load_router(folder) if (folder / CONFIG).exists() else None
