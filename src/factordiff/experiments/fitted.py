"""Table 2 with every method fitted: the same search, the same validation queries and the same budget for all.

Claim: none of the paper, which fits one temperature and gives its rivals equal weights.
Cost: on validation 3 pairs x 7 methods x 16 settings x 600 queries: 202,000 queries, of which those of FKC and RNE (8
particles) cost two to three times the others; on test 3 x 8 rows x 6,000.
Expected: where one number per expert is enough, all methods meet; what is left is what routing per cell can do.

What is fitted: routing's temperature, a product's exponent, a mixture's weight, SuperDiff's temperature and bias (its
weights are the same thing), both exponents of FKC and when it resamples, the same of RNE and its proposal's weights,
the temperature, bias, factors and source of evidence. A learned router has other data: see experiments/learned.py.
"""

from __future__ import annotations

from typing import Any

from factordiff.experiments.claims import verdicts
from factordiff.experiments.differences import routing_minus_rivals
from factordiff.experiments.experiment import Experiment, percent
from factordiff.experiments.learned import fit_learned_row, fitted_router, learned_row
from factordiff.experiments.overview import protocol_picture
from factordiff.experiments.pairs import BEYOND, BUDGET, PAIRS, PAST_ENDS, TUNING, ExpertGroup
from factordiff.experiments.protocols import ALL_FITTED, FITTED
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import FittedChoice, choice, fitted_outcomes, fitted_row, tune
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec

EARNED = {"evidence": "evidence, temperature, bias, factors, source"}
ROUTED = {"routing": "**per pixel, temperature**"}
METHODS = {**FITTED, **ROUTED, **EARNED}
LEARNED = "learned router"


def rows() -> list[RunSpec]:
    """What is known beforehand: the learned routers; the others depend on what validation chooses."""
    return [learned_row(pair, BEYOND) for pair in PAIRS]


def trials() -> list[tuple[ExpertGroup, str]]:
    """The searches."""
    return [(pair, method) for pair in PAIRS for method in METHODS]


def run(runner: Runner) -> None:
    """Validation first, then each method as it was best."""
    for pair, method in trials():
        run_fitted(runner, pair, method)
    for pair in PAIRS:
        fit_learned_row(runner, pair)
    runner.run(rows())


def run_fitted(runner: Runner, group: ExpertGroup, method: str, queries: int | None = BEYOND) -> None:
    """Search a method's numbers, then run it with them on test."""
    if tune(runner, group, method):
        row = fitted_row(runner.archive, group, method, queries)
        assert row is not None
        runner.run([row])


def report(archive: RecordFolder) -> Section:
    """One line per method, the numbers behind each figure, and what was tried."""
    lines: list[tuple[str, ...] | None] = [
        (label, *(fitted_cell(archive, pair, m) for pair in PAIRS)) for m, label in METHODS.items()
    ]
    learned = [learned_cell(archive, pair) for pair in PAIRS]
    lines += [None, (LEARNED, *learned)]
    caption = (
        f"Exact %, 95 % interval over tasks, the first {BEYOND:,} test queries. In brackets what validation chose, "
        f"first expert first; {TUNING} validation queries, {BUDGET} settings for every method, up to {PAST_ENDS} more "
        "past an end, two that break ties. The learned router has more to learn from: 30 of each task's 40 validation "
        "instances, its head chosen on the other 10."
    )
    return Section(
        "All fitted with equal budgets",
        (ALL_FITTED.words,),
        (Table(("method and what is fitted", *(pair.name for pair in PAIRS)), tuple(lines), caption),),
        protocol_picture(archive, ALL_FITTED),
        verdicts(archive, ALL_FITTED),
        (
            routing_minus_rivals(archive, ALL_FITTED, _earned(archive)),
            *(table for pair in PAIRS if (table := tried(archive, pair, METHODS)).rows),
        ),
    )


def _earned(archive: RecordFolder) -> dict[str, dict[str, Outcomes]]:
    """What gives weights to each factor and is no rival of the paper's table, by pair."""
    found = {}
    for pair in PAIRS:
        each = {label: fitted_outcomes(archive, pair, method, BEYOND) for method, label in EARNED.items()}
        each[LEARNED] = archive.outcomes(learned_row(pair, BEYOND))
        found[pair.name] = {label: one for label, one in each.items() if one is not None}
    return found


def fitted_cell(archive: RecordFolder, group: ExpertGroup, method: str) -> str:
    """The accuracy of a fitted method and its numbers; what lies at the edge of what was tried says so."""
    found, chosen = fitted_outcomes(archive, group, method, BEYOND), choice(archive, group, method)
    if found is None or chosen is None:
        return NOTHING
    return f"{percent(found, BEYOND)} ({said(chosen)})"


def learned_cell(archive: RecordFolder, group: ExpertGroup) -> str:
    """The accuracy of the learned router, its head and its size."""
    found, router = archive.outcomes(learned_row(group, BEYOND)), fitted_router(archive, group)
    if found is None or router is None:
        return NOTHING
    return f"{percent(found, BEYOND)} ({router.config.head} head, {router.parameters:,} parameters)"


def said(chosen: FittedChoice) -> str:
    """What was chosen, for people."""
    parts = [f"{name.replace('_', ' ')} {_spelled(value)}" for name, value in chosen.options.items()]
    edge = ["at the edge of what was tried"] if chosen.edge else []
    return "; ".join((parts or ["as printed"]) + edge)


def _spelled(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " and ".join(f"{number:g}" for number in value)
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def tried(archive: RecordFolder, group: ExpertGroup, methods: dict[str, str]) -> Table:
    """Every setting that was tried for a group, in order."""
    lines = []
    for method in methods:
        chosen = choice(archive, group, method)
        for number, (row, share) in enumerate(() if chosen is None else chosen.trials):
            lines.append((method, str(number + 1), f"`{row.name}`", f"{100 * share:.1f}"))
    return Table(
        ("method", "trial", "row", "exact %, validation"),
        tuple(lines),
        f"{group.name}: what was tried",
        sortable=True,
    )


EXPERIMENT = Experiment("fitted", rows, run, report, trials)
