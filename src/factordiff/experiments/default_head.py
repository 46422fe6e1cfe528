"""Col+Occ with an occupancy expert whose head began as heads usually do: both specialists are wrongly sure.

Claim: none; the paper does not say how heads began, and it decides what routing makes of the pair.
Cost: 6,000 queries x (the expert alone, 8 rows as printed, 7 fitted, 1 learned), 7 searches on validation.
Expected: nobody's foreground colors are flat any more, so neither one number per expert nor the surest expert is right
at every cell; a router that was told nothing comes near `views`, which is told who knows what.
"""

from __future__ import annotations

from factordiff.experiments.composition import printed_rows
from factordiff.experiments.differences import difference_line, difference_table
from factordiff.experiments.experiment import Experiment, not_run
from factordiff.experiments.fitted import LEARNED, METHODS, run_fitted, tried
from factordiff.experiments.learned import fit_learned_row, learned_row
from factordiff.experiments.pairs import BEYOND, DEFAULT_HEAD, ExpertGroup, single
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED, PRINTED
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import fitted_outcomes
from factordiff.experiments.two_tables import fitted_table, printed_table
from factordiff.report.document import Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec

TITLE = "Two specialists that are wrongly sure (beyond the paper)"
UNFITTED = {"mixture": "mixture", "product": "product, exponents 1", "views": "view factorisation (told)"}
SHOWN = {**PRINTED, "routing": "**per pixel**", **UNFITTED}


def rows() -> list[RunSpec]:
    """The expert alone, nothing fitted, and the learned router."""
    plan = [single(DEFAULT_HEAD.experts[1], BEYOND), *printed_rows(DEFAULT_HEAD, BEYOND)]
    plan += [DEFAULT_HEAD.row(method, BEYOND) for method in UNFITTED]
    return [*plan, learned_row(DEFAULT_HEAD, BEYOND)]


def trials() -> list[tuple[ExpertGroup, str]]:
    """The searches, of every method: a claim about numbers per expert needs all of them."""
    return [(DEFAULT_HEAD, method) for method in METHODS]


def run(runner: Runner) -> None:
    """As printed, fitted, learned."""
    runner.run(rows()[:-1])
    for group, method in trials():
        run_fitted(runner, group, method)
    fit_learned_row(runner, DEFAULT_HEAD)
    runner.run(rows()[-1:])


def report(archive: RecordFolder) -> Section:
    """Both protocols, each in its table, and the learned router against everybody."""
    if all(archive.outcomes(row) is None for row in rows()):
        return Section(TITLE, (not_run(*rows()),))
    printed, fitted = (protocol.routed(archive, DEFAULT_HEAD) for protocol in (AS_PRINTED, ALL_FITTED))
    printed = None if printed is None else printed.first(BEYOND)
    text = (
        "`trans-color` with `trans-occ-default-head`, whose head began with random weights. The head of `trans-occ` "
        "began at zero, so its foreground colors stay flat and its confidence means occupancy; these do not, and both "
        "experts are wrongly sure off their ground. Then no number for a whole sample is right at every cell, and the "
        "surest expert is often the wrong one: weights per factor have to be earned. `views` is told which expert "
        "knows occupancy and which knows color; the router is told nothing. [Worlds](../worlds.md) has the bounds.",
    )
    tables = (
        printed_table(archive, DEFAULT_HEAD, SHOWN, ("per pixel", printed)),
        fitted_table(archive, DEFAULT_HEAD, METHODS, ("per pixel, fitted", fitted)),
        *_learned_minus_others(archive),
    )
    return Section(TITLE, text, tables, long_tables=(tried(archive, DEFAULT_HEAD, METHODS),))


def others(archive: RecordFolder) -> dict[str, Outcomes]:
    """Whom the learned router is held against: every fitted method, and what was told."""
    found = {
        label.replace("**", ""): fitted_outcomes(archive, DEFAULT_HEAD, method, BEYOND)
        for method, label in METHODS.items()
    }
    found[UNFITTED["views"]] = archive.outcomes(DEFAULT_HEAD.row("views", BEYOND))
    return {label: one for label, one in found.items() if one is not None}


def _learned_minus_others(archive: RecordFolder) -> tuple[Table, ...]:
    learned = archive.outcomes(learned_row(DEFAULT_HEAD, BEYOND))
    if learned is None:
        return ()
    lines = [
        difference_line(DEFAULT_HEAD.name, f"{LEARNED} minus {label}", learned, one)
        for label, one in others(archive).items()
    ]
    return (difference_table(lines, f"The learned router against the others, {ALL_FITTED.name}."),)


EXPERIMENT = Experiment("default-head", rows, run, report, trials)
