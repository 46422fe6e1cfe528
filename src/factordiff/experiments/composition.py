"""Table 2: compositions of three pairs of experts.

Claim: per-pixel routing is level with the best per-sample method on two full experts (95.2 %), 0.8 points above it
on Occ+Full (94.0 against 93.2) and 12.1 points above it on Col+Occ (90.5 against 78.4).
Cost, in row-passes: singles 9.6 M (shared with Table 1); PoE, SuperDiff and routing on 24,000 queries 3 x 3 x 4.8 M =
43.2 M; FKC and RNE on the first 6,000 3 x 2 x 9.6 M = 57.6 M nominal (shared states make it fewer executed); beyond
the paper on the first 6,000 about 32 rows x 1.2 M = 38 M; chosen on validation: temperatures 3 x 7 x 0.24 M = 5 M,
global weights 3 x 2 x 11 x 0.24 M = 16 M, particle methods 3 x 2 x 12 settings x 0.96 M = 69 M.
Expected: the order of the paper on Col+Occ; on Full+Full all compositions within half a point.

Decoding: argmax but for FKC and RNE, which draw at temperature 1 with 8 particles (argmax would make particles the
same); 128 steps in order of confidence. FKC proposes from the product, RNE from the mixture. Their exponents (1/M, 1,
one a tenth of the other or ten times it) and when they resample (below half of effective particles, or at every step)
are chosen on validation, and both readings of their answer are shown: a baseline gets its better one.
"""

from __future__ import annotations

from factordiff.experiments.experiment import Experiment, paper, percent
from factordiff.experiments.pairs import BEYOND, COL_OCC, EVERYTHING, PAIRS, SINGLES, ExpertPair, single
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import better_row, candidates, fitted_row, particle_rows
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.findings import read_finding
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec

PER_SAMPLE = {"geometric-mean": "Average (PoE)", "superdiff": "Density (SuperDiff)"}
PARTICLES = {"fkc": "FKC", "rne": "RNE"}
READINGS = {"highest-target": "highest target", "draw": "weighted draw"}
PAPER: dict[str, tuple[float | None, float | None, float | None]] = {
    "trans-full": (93.0, 93.0, None),
    "conv-full": (89.3, None, None),
    "trans-occ": (None, 0.2, 0.2),
    "trans-color": (None, None, 3.3),
    "geometric-mean": (95.1, 91.0, 73.2),
    "superdiff": (95.1, 93.2, 77.7),
    "fkc": (95.2, 90.2, 78.4),
    "rne": (94.1, 85.2, 76.5),
    "routing": (95.2, 94.0, 90.5),
}
BEYOND_METHODS = {
    "mixture": "mixture",
    "product": "product, exponents 1",
    "views": "view factorisation",
    "soft-routing": "soft routing",
}
FITTED = {
    "mixture": "mixture, weights fitted on validation",
    "product": "product, exponents fitted on validation",
    "routing": "per pixel, temperature fitted on validation",
}
FACTORS = {
    "row": "rows",
    "block": "2x2 blocks",
    "component": "components of the query",
    "whole": "whole grid",
}


def beyond_row(
    pair: ExpertPair, method: str, queries: int | None = BEYOND, split: str = "test"
) -> RunSpec | None:
    """A row beyond the paper; None where it does not apply."""
    return None if method == "views" and not pair.has_occupancy else pair.row(method, queries, split)


def rows() -> list[RunSpec]:
    """Everything but what validation decides."""
    plan = [single(expert) for expert in SINGLES]
    for pair in PAIRS:
        plan += [pair.row(method) for method in ("routing", *PER_SAMPLE)]
        plan += [pair.row(method, BEYOND) for method in PARTICLES]
        plan += [row for method in BEYOND_METHODS if (row := beyond_row(pair, method)) is not None]
        plan += [pair.row("routing", BEYOND, factors=factors) for factors in FACTORS]
        plan += tuning_rows(pair)
    return plan


def tuning_rows(pair: ExpertPair) -> list[RunSpec]:
    """What validation decides by."""
    fitted = [row for method in FITTED for row in candidates(pair, method).values()]
    return [*fitted, *(row for method in PARTICLES for row in particle_rows(pair, method))]


def run(runner: Runner) -> None:
    """Validation first, then the table."""
    particle = {pair.row(method, BEYOND) for pair in PAIRS for method in PARTICLES}
    runner.run([row for row in rows() if row not in particle])
    archive = runner.archive
    chosen = [better_row(archive, pair, method, BEYOND) for pair in PAIRS for method in PARTICLES]
    fitted = [row for pair in PAIRS for row in fitted_rows(archive, pair).values()]
    runner.run([*fitted, *chosen])


def fitted_rows(
    archive: RecordFolder, pair: ExpertPair, queries: int | None = BEYOND, split: str = "test"
) -> dict[str, RunSpec]:
    """What has one fitted number for each expert, by the name in the table; what is not fitted yet is left out."""
    found = {label: fitted_row(archive, pair, method, queries, split) for method, label in FITTED.items()}
    return {label: row for label, row in found.items() if row is not None}


def per_sample(archive: RecordFolder, pair: ExpertPair) -> dict[str, Outcomes]:
    """The per-sample methods of the paper that have records, by the name in the table; particles by better reading.

    A particle method that was not given every setting on validation has not had its chance, and is left out.
    """
    found = {label: archive.outcomes(pair.row(method)) for method, label in PER_SAMPLE.items()}
    for method, label in PARTICLES.items():
        if any(archive.outcomes(setting) is None for setting in particle_rows(pair, method)):
            continue
        row = better_row(archive, pair, method, BEYOND)
        readings = [one for reading in READINGS if (one := archive.outcomes(row, reading)) is not None]
        found[label] = max(readings, key=lambda one: float(one.exact.mean())) if readings else None
    return {label: one for label, one in found.items() if one is not None}


def report(archive: RecordFolder) -> Section:
    """The paper's table with ours beside it, and below a rule what is beyond the paper."""
    lines: list[tuple[str, ...] | None] = []
    for expert, label in SINGLES.items():
        found = archive.outcomes(single(expert))
        cells = [percent(found, EVERYTHING) if expert in pair.experts else NOTHING for pair in PAIRS]
        lines.append(_line("single", label, PAPER[expert], cells))
    for method, label in PER_SAMPLE.items():
        cells = [percent(archive.outcomes(pair.row(method)), EVERYTHING) for pair in PAIRS]
        lines.append(_line("per sample", label, PAPER[method], cells))
    for method, label in PARTICLES.items():
        chosen = [better_row(archive, pair, method, BEYOND) for pair in PAIRS]
        for reading, words in READINGS.items():
            cells = [_marked(archive.outcomes(row, reading), row) for row in chosen]
            lines.append(_line("per sample", f"{label}, {words}", PAPER[method], cells))
    cells = [percent(archive.outcomes(pair.row("routing")), EVERYTHING) for pair in PAIRS]
    lines.append(_line("per pixel", "**maximum selection**", PAPER["routing"], cells))
    lines.append(None)
    lines += _beyond(archive)
    headings = (
        "granularity",
        "method",
        *(f"{p.name}{side}" for p in PAIRS for side in (", paper", ", here")),
    )
    caption = (
        f"Exact %, 95 % interval over tasks (drawn again with their queries). {EVERYTHING:,} queries; FKC, RNE and "
        f"everything below the rule (beyond the paper) on the first {BEYOND:,} of the list. FKC and RNE with "
        "exponents 1/M, resampled below half of effective particles, unless marked. In brackets behind what was "
        "fitted: the numbers of the two experts."
    )
    return Section(
        "Compositions (Table 2)",
        _vetoes(archive),
        tables=(Table(headings, tuple(lines), caption),),
        long_tables=tuple(_per_task(archive, pair) for pair in PAIRS),
    )


def _vetoes(archive: RecordFolder) -> tuple[str, ...]:
    """Why products of specialists fail: an expert forbids the truth where it was taught nothing."""
    found = {name: read_finding(archive.folder, f"confidence-{name}") for name in COL_OCC.experts}
    told = {
        name: curve["truth"][0][1] for name, curve in found.items() if curve and any(curve.get("truth", ()))
    }
    if len(told) < len(found):
        return ()
    medians = " and ".join(f"{name} {value:.2g}" for name, value in told.items())
    return (
        f"Col+Occ, the log-probability of the truth at hidden background cells, in the median: {medians}. Where one "
        "expert all but forbids what is so, a product with equal exponents lets it, at every such cell. A small "
        "exponent for that expert takes the veto away, as a mixture does: such numbers are fitted below the rule.",
    )


def _beyond(archive: RecordFolder) -> list[tuple[str, ...]]:
    lines = []
    nothing = (None, None, None)
    for method, label in BEYOND_METHODS.items():
        found = [
            None if (row := beyond_row(pair, method)) is None else archive.outcomes(row) for pair in PAIRS
        ]
        lines.append(_line("beyond", label, nothing, [percent(one, BEYOND) for one in found]))
    fitted = [fitted_rows(archive, pair) for pair in PAIRS]
    for label in FITTED.values():
        cells = [
            NOTHING if label not in rows_ else _numbered(archive.outcomes(rows_[label]), rows_[label])
            for rows_ in fitted
        ]
        lines.append(_line("beyond", label, nothing, cells))
    for factors, label in FACTORS.items():
        cells = [
            percent(archive.outcomes(pair.row("routing", BEYOND, factors=factors)), BEYOND) for pair in PAIRS
        ]
        lines.append(_line("beyond", f"routing by {label}", nothing, cells))
    return lines


def _line(
    granularity: str, label: str, theirs: tuple[float | None, ...], cells: list[str]
) -> tuple[str, ...]:
    figures = [part for figure, cell in zip(theirs, cells, strict=True) for part in (paper(figure), cell)]
    return (granularity, label, *figures)


def _marked(found: Outcomes | None, row: RunSpec) -> str:
    text = percent(found, BEYOND)
    if found is None:
        return text
    exponents = "" if row.beta is None else f", exponents {_listed(row.beta)}"
    return f"{text}{exponents}{'' if row.resampling is None else ', resampled at every step'}"


def _numbered(found: Outcomes | None, row: RunSpec) -> str:
    """An accuracy with the numbers that were fitted."""
    numbers = row.temperatures or row.weights or row.beta or (1.0, 1.0)
    return NOTHING if found is None else f"{percent(found, BEYOND)} ({_listed(numbers)})"


def _listed(numbers: tuple[float, ...]) -> str:
    """Numbers as text; once where they are equal."""
    return " and ".join(f"{number:g}" for number in (numbers[:1] if len(set(numbers)) == 1 else numbers))


def _per_task(archive: RecordFolder, pair: ExpertPair) -> Table:
    columns = {expert: archive.outcomes(single(expert)) for expert in pair.experts}
    columns |= per_sample(archive, pair)
    columns |= {"per pixel": archive.outcomes(pair.row("routing"))}
    shares = {label: one.per_task() for label, one in columns.items() if one is not None}
    tasks = sorted({task for column in shares.values() for task in column})
    lines = tuple(
        (task, *(f"{100 * column[task]:.1f}" if task in column else NOTHING for column in shares.values()))
        for task in tasks
    )
    return Table(("task", *shares), lines, f"{pair.name}: exact % of each task", sortable=True)


EXPERIMENT = Experiment("composition", rows, run, report)
