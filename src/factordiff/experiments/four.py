"""Four experts at once: two generalists and two specialists.

Claim: none; the paper composes pairs, though its equations are for M experts.
Cost: 6,000 queries x 4 experts x (5 rows as printed, 4 fitted, 1 learned), 4 searches on validation; FKC and RNE, with
eight particles of four experts each, are left out.
Expected: at a temperature of 1 the surest expert is often the one that should be quiet.
"""

from __future__ import annotations

from factordiff.experiments.claims import best_single
from factordiff.experiments.experiment import Experiment, not_run, percent
from factordiff.experiments.fitted import run_fitted, tried
from factordiff.experiments.learned import fit_learned_row, learned_row
from factordiff.experiments.pairs import BEYOND, FOUR, SINGLES, ExpertGroup
from factordiff.experiments.runner import Runner
from factordiff.experiments.two_tables import fitted_table, printed_table
from factordiff.report.document import Section
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec

METHODS = {
    "geometric-mean": "Average (PoE)",
    "product": "product",
    "mixture": "mixture",
    "superdiff": "Density (SuperDiff)",
    "routing": "**per pixel**",
}
SEARCHED = {
    "product": "product, exponents",
    "mixture": "mixture, weights",
    "superdiff": "SuperDiff, temperature and biases",
    "routing": "**per pixel, temperatures**",
}


def rows() -> list[RunSpec]:
    """Nothing fitted, and the learned router."""
    return [*(FOUR.row(method, BEYOND) for method in METHODS), learned_row(FOUR, BEYOND)]


def trials() -> list[tuple[ExpertGroup, str]]:
    """The searches: a number for each expert but the first."""
    return [(FOUR, method) for method in SEARCHED]


def run(runner: Runner) -> None:
    """As printed, fitted, learned."""
    runner.run(rows()[:-1])
    for group, method in trials():
        run_fitted(runner, group, method)
    fit_learned_row(runner, FOUR)
    runner.run(rows()[-1:])


def report(archive: RecordFolder) -> Section:
    """Each protocol in its table, every row with its difference to the best expert alone."""
    title = "Four experts at once (beyond the paper)"
    if all(archive.outcomes(row) is None for row in rows()):
        return Section(title, (not_run(*rows()),))
    best = best_single(archive, FOUR)
    alone = None if best is None else best[1].first(BEYOND)
    named = "the best expert" if best is None else SINGLES[best[0]]
    text = (
        f"{', '.join(FOUR.experts)}, in this order. A specialist is sure off its ground too, so a fourth opinion is "
        "not free: whoever asks more experts must know better whom to believe. The best of them alone, "
        f"{named}: {percent(alone, BEYOND)}.",
    )
    tables = (
        printed_table(archive, FOUR, METHODS, (named, alone)),
        fitted_table(archive, FOUR, SEARCHED, (named, alone)),
    )
    return Section(title, text, tables, long_tables=(tried(archive, FOUR, SEARCHED),))


EXPERIMENT = Experiment("four", rows, run, report, trials)
