"""Compare methods on anybody's experts and data: rows run, bounds beside them, one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.locks import Lock
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.rules import reveal_rule
from factordiff.team.team import ExpertLike, compose
from factordiff.worlds.cached_expert import CachedExpert
from factordiff.worlds.comparison import Comparison, Row, row_of, union
from factordiff.worlds.folder import Folder
from factordiff.worlds.methods import FACTOR, Given, MethodRow, entries
from factordiff.worlds.metric import Metric, Scoring, as_metric
from factordiff.worlds.queries import Queries, as_queries
from factordiff.worlds.running import run
from factordiff.worlds.setting import BUDGET, OnProgress, Setting

METHODS = ("alone", "mixture", "product", "superdiff", "routing", "union", "oracle")
# Those that need validation queries.
FITTED = (
    "fitted:mixture", "fitted:product", "fitted:routing", "fitted:superdiff", "fitted:evidence", "fitted:learned",
    "fitted:learned[kind=neighbourhood]",
)  # fmt: skip


def compare(
    experts: Sequence[ExpertLike] | Mapping[str, ExpertLike],
    methods: Sequence[Given] | Mapping[str, Given] | str | None = None,
    data: Queries | Sequence[Any] = (),
    metric: str | Metric | Scoring = "exact",
    *,
    validation: Queries | Sequence[Any] | None = None,
    objectives: Sequence[str] | None = None,
    layout: tuple[int, int] | None = None,
    reveal: str | RevealRule = "fast",
    device: torch.device | str = "cpu",
    batch: int = 64,
    seed: int = 0,
    factors: Sequence[str] = (),
    budget: int = BUDGET,
    title: str = "Comparison",
    out: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Run every method and bound on the same queries and put them into one table.

    `data` is `(x_t, x_0)`, `(x_t, x_0, condition)` or `Queries`, which may also say clusters and owners. `methods` are
    names (`factordiff compare --help`), `{"method": NAME, option: value}`, compositions, teams, or functions from a
    `Setting`, which holds the validation queries, to a team; a mapping gives them names of one's own. By default they
    are all that need nothing more, and with `validation` queries, which are never those of `data`, those that are
    fitted too: numbers with at most `budget` trials each, evidence inside `factors`, and routers. `metric` is
    `exact`, `cells`, `nats` (one pass) or a function (answers, truth) -> one number per query. With `out` records are
    written there as they come, and a second call goes on where the first one stopped; `about` then says which data and
    weights these are, and a composition, team or function is known by its name alone. `on_progress(row, done, queries)`
    hears how far it is.

    >>> import torch
    >>> from factordiff.toy.painting import painters, picture
    >>> hidden = torch.full((1, 64), 5)
    >>> table = compare(dict(zip(("edges", "middle"), painters())), "alone,mixture,routing", (hidden, picture()[None]))
    >>> table["routing"].value(table.main)
    1.0
    """
    queries = as_queries(data)
    if not len(queries):
        raise InvalidInput("data: expected at least one query, got none")
    chosen = as_metric(metric)
    base = compose(
        experts, "single" if len(experts) == 1 else "mixture", objectives=objectives, device=device
    )
    queries.check(base.experts)
    if validation is not None:
        validation = as_queries(validation)
        validation.check(base.experts)
    setting = prepared_setting(
        {member.name: member.expert for member in base.members},
        chosen,
        validation=validation,
        objectives=[member.objective for member in base.members],
        layout=layout,
        reveal=reveal,
        device=base.device,
        batch=batch,
        seed=seed,
        factors=factors,
        budget=budget,
        on_progress=on_progress,
    )
    if methods is None:
        methods = METHODS if validation is None else (*METHODS, *FITTED)
    rows = entries(methods, setting.names, queries.owners is not None)
    if out is not None:
        setting = replace(setting, folder=Folder(Path(out), _header(setting, title, queries, about)))
    return assembled(rows, setting, queries, title)


def prepared_setting(experts: Mapping[str, Expert], metric: Metric, **settings: Any) -> Setting:
    """The setting of a comparison; where every row asks the same of the experts, they are asked once."""
    reveal_rule(settings["reveal"])
    if metric.mode == "one-pass":
        experts = {name: CachedExpert(expert) for name, expert in experts.items()}
    return Setting(experts, metric, **settings)


def assembled(
    rows: Sequence[MethodRow],
    setting: Setting,
    queries: Queries,
    title: str,
) -> Comparison:
    """The table of these rows, those run that have to be."""
    measures = setting.metric.measures
    names = [measure.name for measure in measures]
    found: list[Row] = []
    with nullcontext() if setting.folder is None else Lock.of_folder(setting.folder.path):
        for entry in rows:
            if entry.prepare is None:
                continue
            records = run(entry, setting, queries)
            found.append(row_of(entry.label, entry.family, records, names, _note(setting, entry.label)))
    if any(entry.prepare is None for entry in rows):
        found.append(union(found, measures[0]))
    families = ["alone", "one number per expert", "per sample", FACTOR, "bound"]
    ordered = sorted(found, key=lambda row: families.index(row.family) if row.family in families else 3)
    exact = setting.metric.mode == "enumerated"
    return Comparison(title, measures, tuple(ordered), exact, {"fits": dict(setting.notes)})


def _note(setting: Setting, label: str) -> str:
    """What was fitted, for the table."""
    fit = setting.notes.get(label)
    if fit is None:
        return ""
    if "router" in fit:
        return f"{fit['router']['head']} head, {fit['router']['parameters']:,} parameters"
    options = fit["options"]
    alone = len(options) == 1
    shown = [_spelled(value) if alone else f"{name} {_spelled(value)}" for name, value in options.items()]
    edge = ["at the edge of what was tried"] if fit["edge"] else []
    return "; ".join([*shown, *edge]) or "as it is"


def _spelled(value: Any) -> str:
    """Four digits: a weight of 1.00135, which breaks ties, is not 1."""
    if not isinstance(value, list | tuple):
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    shown = ", ".join(f"{number:.4g}" for number in value[:4])
    return shown + (", ..." if len(value) > 4 else "")


def _header(
    setting: Setting, title: str, queries: Queries, about: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What a file of records must say about itself; the truth is named by its hash."""
    return {
        "world": title,
        "experts": list(setting.names),
        "measures": [measure.name for measure in setting.metric.measures],
        "mode": setting.metric.mode,
        "reveal": str(setting.reveal),
        "seed": setting.seed,
        **(dict(about) if about is not None else {"data": queries.sha256()}),
    }
