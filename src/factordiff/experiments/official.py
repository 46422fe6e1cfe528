"""Beyond the paper: all methods on the published ARC-AGI-1 pairs of the 120 tasks, and on tasks never trained on.

Claim: none; the paper evaluates on RE-ARC instances only and says so.
Cost: 130 + 60 queries x every method of Table 2: about 0.4 M row-passes a pair and 0.6 M for its particles.
Expected: lower than on RE-ARC, whose instances the experts were trained on; close to zero on unseen tasks.

The answer's shape is inferred from the demonstrations. `grid`: share of right test grids. `task`: share of tasks with
every test grid right.
"""

from __future__ import annotations

import numpy as np

from factordiff.experiments.composition import (
    BEYOND_METHODS,
    FACTORS,
    PARTICLES,
    PER_SAMPLE,
    READINGS,
    beyond_row,
    fitted_rows,
)
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import PAIRS, SINGLES, ExpertPair, single
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import better_row
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec
from factordiff.report.statistics import share

SPLITS = {"official": "published pairs of the 120 tasks", "unseen": "tasks never trained on"}


def fixed_rows(pair: ExpertPair, split: str) -> dict[str, RunSpec]:
    """The methods whose settings need no validation."""
    found = {label: pair.row(method, split=split) for method, label in PER_SAMPLE.items()}
    found["per pixel"] = pair.row("routing", split=split)
    for method, label in BEYOND_METHODS.items():
        row = beyond_row(pair, method, None, split)
        if row is not None:
            found[label] = row
    for factors, label in FACTORS.items():
        found[f"routing by {label}"] = pair.row("routing", split=split, factors=factors)
    return found


def rows() -> list[RunSpec]:
    """Every method on both sets."""
    plan = []
    for split in SPLITS:
        plan += [single(expert, split=split) for expert in SINGLES]
        for pair in PAIRS:
            plan += [
                *fixed_rows(pair, split).values(),
                *(pair.row(method, split=split) for method in PARTICLES),
            ]
    return plan


def run(runner: Runner) -> None:
    """Run them; settings chosen on validation are used where that has been run."""
    archive = runner.archive
    chosen = [
        better_row(archive, pair, method, None, split)
        for split in SPLITS
        for pair in PAIRS
        for method in PARTICLES
    ]
    fitted = [
        row for split in SPLITS for pair in PAIRS for row in fitted_rows(archive, pair, None, split).values()
    ]
    runner.run([row for row in rows() if row.method not in PARTICLES] + chosen + fitted)


def report(archive: RecordFolder) -> Section:
    """Grid and task accuracy of every method."""
    lines: list[tuple[str, ...] | None] = []
    for expert, label in SINGLES.items():
        lines.append(("single", label, *_cells(archive, {s: (single(expert, split=s), "") for s in SPLITS})))
    for pair in PAIRS:
        lines.append(None)
        for label in fixed_rows(pair, "official"):
            each = {split: (fixed_rows(pair, split)[label], "") for split in SPLITS}
            lines.append((pair.name, label, *_cells(archive, each)))
        for label in fitted_rows(archive, pair):
            each = {split: (fitted_rows(archive, pair, None, split)[label], "") for split in SPLITS}
            lines.append((pair.name, label, *_cells(archive, each)))
        for method, label in PARTICLES.items():
            for reading, words in READINGS.items():
                each = {split: (better_row(archive, pair, method, None, split), reading) for split in SPLITS}
                lines.append((pair.name, f"{label}, {words}", *_cells(archive, each)))
    headings = (
        "experts",
        "method",
        *(f"{kind}, {split}" for split in SPLITS for kind in ("grid %", "task %")),
    )
    caption = (
        "; ".join(f"{split}: {words}" for split, words in SPLITS.items()) + ". 95 % intervals over tasks."
    )
    return Section("Published tasks (beyond the paper)", tables=(Table(headings, tuple(lines), caption),))


def _cells(archive: RecordFolder, rows_: dict[str, tuple[RunSpec, str]]) -> list[str]:
    cells = []
    for row, reading in rows_.values():
        cells += accuracies(archive.outcomes(row, reading or "highest-target"))
    return cells


def accuracies(found: Outcomes | None) -> list[str]:
    """Grid and task accuracy as text."""
    if found is None or found.grid is None:
        return [NOTHING, NOTHING]
    right = found.grid
    _, place = np.unique(found.task, return_inverse=True)
    wrong = np.bincount(place, weights=~right)
    return [share(right, found.task).percent(), f"{100 * float((wrong == 0).mean()):.1f}"]


EXPERIMENT = Experiment("official", rows, run, report)
