"""Four experts at once: two generalists and two specialists.

Claim: none; the paper composes pairs, though its equations are for M experts.
Cost: 6,000 queries x 4 experts x (5 rows as printed, 4 fitted, 1 learned), 4 searches on validation; FKC and RNE, with
eight particles of four experts each, are left out.
Expected: at a temperature of 1 the surest expert is often the one that should be quiet.
"""

from __future__ import annotations

from factordiff.experiments.claims import best_single
from factordiff.experiments.experiment import Experiment, not_run, percent
from factordiff.experiments.fitted import fitted_cell, learned_cell, run_fitted, tried
from factordiff.experiments.learned import fit_learned_row, learned_row
from factordiff.experiments.pairs import BEYOND, CAPTION, FOUR, SINGLES, ExpertGroup
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import fitted_outcomes
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec

METHODS = {
    "geometric-mean": "Average (PoE)",
    "product": "product",
    "mixture": "mixture",
    "superdiff": "Density (SuperDiff)",
    "routing": "**per pixel**",
}
SEARCHED = ("product", "mixture", "superdiff", "routing")


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
    """Both protocols side by side, each with its difference to the best expert alone."""
    title = "Four experts at once (beyond the paper)"
    if all(archive.outcomes(row) is None for row in rows()):
        return Section(title, (not_run(*rows()),))
    best = best_single(archive, FOUR)

    def over(found: Outcomes | None) -> str:
        return NOTHING if found is None or best is None else found.against(best[1]).gain.points()

    lines: list[tuple[str, ...] | None] = []
    if best is not None:
        lines += [(SINGLES[best[0]], percent(best[1].first(BEYOND), BEYOND), NOTHING, NOTHING, NOTHING), None]
    for method, label in METHODS.items():
        plain = archive.outcomes(FOUR.row(method, BEYOND))
        fitted = fitted_outcomes(archive, FOUR, method, BEYOND) if method in SEARCHED else None
        cell = fitted_cell(archive, FOUR, method) if method in SEARCHED else NOTHING
        lines.append((label, percent(plain, BEYOND), over(plain), cell, over(fitted)))
    learned = archive.outcomes(learned_row(FOUR, BEYOND))
    lines.append(("learned router", NOTHING, NOTHING, learned_cell(archive, FOUR), over(learned)))
    headings = ("method", "nothing fitted", "minus best expert", "all fitted", "minus best expert, fitted")
    text = (
        f"{', '.join(FOUR.experts)}, in this order. A specialist is sure off its ground too, so a fourth opinion is "
        "not free: whoever asks more experts must know better whom to believe.",
    )
    return Section(
        title,
        text,
        (Table(headings, tuple(lines), CAPTION),),
        long_tables=(tried(archive, FOUR, dict.fromkeys(SEARCHED, "")),),
    )


EXPERIMENT = Experiment("four", rows, run, report, trials)
