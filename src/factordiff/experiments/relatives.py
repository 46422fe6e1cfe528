"""Specialists trained apart, and one that is a relative of the full expert.

Claim: none; the paper does not say whether its specialists were trained from scratch.
Cost: 6,000 queries x (2 alone + 2 pairs x 5 methods as printed + 2 x 4 fitted), 2 x 4 searches on validation.
Expected: a relative of the full expert knows its own question better, and errs where the full expert errs.
"""

from __future__ import annotations

from factordiff.experiments.composition import printed_rows
from factordiff.experiments.experiment import Experiment, not_run, percent
from factordiff.experiments.fitted import fitted_cell, run_fitted
from factordiff.experiments.pairs import (
    BEYOND,
    CAPTION,
    COL_OCC,
    COL_RELATIVE,
    OCC_FULL,
    OCC_RELATIVE,
    RELATIVE,
    ExpertGroup,
    single,
)
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED, FITTED, PRINTED
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import fitted_outcomes
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec

TWINS = {OCC_FULL: OCC_RELATIVE, COL_OCC: COL_RELATIVE}
APART = "trans-occ"
SEARCHED = ("routing", "product", "mixture", "superdiff")  # particles cost as much as all of these


def own_question(expert: str, queries: int | None = BEYOND) -> RunSpec:
    """An occupancy expert asked about occupancy."""
    return RunSpec((expert,), "single", question="occupancy", queries=queries)


def rows() -> list[RunSpec]:
    """The relative alone, on its own question, and in both pairs."""
    plan = [single(RELATIVE, BEYOND), own_question(RELATIVE)]
    return plan + [row for pair in TWINS.values() for row in printed_rows(pair, BEYOND)]


def trials() -> list[tuple[ExpertGroup, str]]:
    """The searches."""
    return [(pair, method) for pair in TWINS.values() for method in SEARCHED]


def run(runner: Runner) -> None:
    """As printed, then fitted."""
    runner.run(rows())
    for pair, method in trials():
        run_fitted(runner, pair, method)


def report(archive: RecordFolder) -> Section:
    """Each method with the expert trained apart and with the relative, on the same queries."""
    title = "Specialists trained apart, and relatives"
    if archive.outcomes(single(RELATIVE, BEYOND)) is None:
        return Section(title, (not_run(*rows()[:2]),))
    lines: list[tuple[str, ...] | None] = [
        _line("occupancy expert alone", single(APART, BEYOND), single(RELATIVE, BEYOND), archive),
        _line("its own question", own_question(APART), own_question(RELATIVE), archive),
    ]
    fitted: list[tuple[str, ...]] = []
    for apart, relative in TWINS.items():
        lines.append(None)
        for method, label in {**PRINTED, "routing": "per pixel"}.items():
            one, other = (AS_PRINTED.find(archive, pair, method) for pair in (apart, relative))
            lines.append(_compared(f"{apart.name}: {label}", one, other))
        for method in SEARCHED:
            label = {**FITTED, "routing": "per pixel, temperature"}[method]
            cells = [fitted_cell(archive, pair, method) for pair in (apart, relative)]
            both = [fitted_outcomes(archive, pair, method, BEYOND) for pair in (apart, relative)]
            fitted.append((f"{apart.name}: {label}", *cells, _compared("", *both)[-1]))
    headings = ("", "trained apart", "relative of the full expert", "relative minus apart")
    text = (
        f"`{APART}` was trained apart from every other expert of these tables; `{RELATIVE}` began with the weights of "
        "`trans-full`. All claims are judged on experts trained apart.",
    )
    tables = (
        Table(headings, tuple(lines), f"{AS_PRINTED.name.capitalize()}. {CAPTION}"),
        Table(headings, tuple(fitted), f"{ALL_FITTED.name.capitalize()}. {CAPTION}"),
    )
    return Section(title, text, tables)


def _line(label: str, apart: RunSpec, relative: RunSpec, archive: RecordFolder) -> tuple[str, ...]:
    return _compared(label, archive.outcomes(apart), archive.outcomes(relative))


def _compared(label: str, apart: Outcomes | None, relative: Outcomes | None) -> tuple[str, ...]:
    one, other = (None if found is None else found.first(BEYOND) for found in (apart, relative))
    gain = NOTHING if one is None or other is None else other.against(one).gain.points()
    return (label, percent(one, BEYOND), percent(other, BEYOND), gain)


EXPERIMENT = Experiment("relatives", rows, run, report, trials)
