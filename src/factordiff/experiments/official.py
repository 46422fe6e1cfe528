"""Beyond the paper: all methods on the published ARC-AGI-1 pairs of the 120 tasks, and on tasks never trained on.

Claim: none; the paper evaluates on RE-ARC instances only and says so.
Cost: 130 + 60 queries x every method of Table 2: about 0.4 M row-passes a pair and 0.6 M for its particles.
Expected: lower than on RE-ARC, whose instances the experts were trained on; close to zero on unseen tasks.

The answer's shape is inferred from the demonstrations. `grid`: share of right test grids. `task`: share of tasks with
every test grid right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from factordiff.experiments.composition import BEYOND_METHODS, FACTORS, beyond_row
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.fitted import LEARNED, METHODS
from factordiff.experiments.learned import learned_row
from factordiff.experiments.pairs import PAIRS, SINGLES, ExpertGroup, single
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED, PARTICLES, PER_SAMPLE
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import READINGS, fitted_outcomes, fitted_row
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec
from factordiff.report.statistics import share

SPLITS = {"official": "published pairs of the 120 tasks", "unseen": "tasks never trained on"}


def fixed_rows(pair: ExpertGroup, split: str) -> dict[str, RunSpec]:
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
    """Every method as the paper has it on both sets, and the learned routers; fitted ones come when they are known."""
    plan = []
    for split in SPLITS:
        plan += [single(expert, split=split) for expert in SINGLES]
        for pair in PAIRS:
            plan += [
                *fixed_rows(pair, split).values(),
                *(pair.row(method, split=split) for method in PARTICLES),
                learned_row(pair, split=split),
            ]
    return plan


def run(runner: Runner) -> None:
    """Run them; what validation chose is used where that has been run."""
    runner.run([*rows(), *led_to(runner.archive, runner.asks_for)])


def led_to(
    archive: RecordFolder, asked: Callable[[Sequence[str], str], bool] = lambda experts, method: True
) -> list[RunSpec]:
    """The rows of the methods that validation has chosen numbers for."""
    fitted = [
        fitted_row(archive, pair, method, None, split)
        for split in SPLITS
        for pair in PAIRS
        for method in METHODS
        if asked(pair.experts, method)
    ]
    return [row for row in fitted if row is not None]


def report(archive: RecordFolder) -> Section:
    """Grid and task accuracy of the experts alone and as the paper has it, and in a second table all fitted."""
    lines: list[tuple[str, ...] | None] = []
    fitted: list[tuple[str, ...] | None] = []
    for expert, label in SINGLES.items():
        found = [archive.outcomes(single(expert, split=split)) for split in SPLITS]
        lines.append(("single", label, *_cells(found)))
    for pair in PAIRS:
        lines.append(None)
        fitted += [None] if fitted else []
        for label in fixed_rows(pair, "official"):
            found = [archive.outcomes(fixed_rows(pair, split)[label]) for split in SPLITS]
            lines.append((pair.name, label, *_cells(found)))
        for method, label in PARTICLES.items():
            for reading, words in READINGS.items():
                found = [archive.outcomes(pair.row(method, split=split), reading) for split in SPLITS]
                lines.append((pair.name, f"{label}, {words}", *_cells(found)))
        for method, label in METHODS.items():
            found = [fitted_outcomes(archive, pair, method, None, split) for split in SPLITS]
            fitted.append((pair.name, label, *_cells(found)))
        found = [archive.outcomes(learned_row(pair, split=split)) for split in SPLITS]
        fitted.append((pair.name, LEARNED, *_cells(found)))
    headings = (
        "experts",
        "method",
        *(f"{kind}, {split}" for split in SPLITS for kind in ("grid %", "task %")),
    )
    caption = (
        "; ".join(f"{split}: {words}" for split, words in SPLITS.items()) + ". 95 % intervals over tasks."
    )
    tables = (
        Table(headings, tuple(lines), f"{AS_PRINTED.name.capitalize()}, nothing fitted. {caption}"),
        Table(headings, tuple(fitted), f"{ALL_FITTED.name.capitalize()}, on validation. {caption}"),
    )
    return Section("Published tasks (beyond the paper)", tables=tables)


def _cells(found: list[Outcomes | None]) -> list[str]:
    return [cell for one in found for cell in accuracies(one)]


def accuracies(found: Outcomes | None) -> list[str]:
    """Grid and task accuracy as text."""
    if found is None or found.grid is None:
        return [NOTHING, NOTHING]
    right = found.grid
    _, place = np.unique(found.task, return_inverse=True)
    wrong = np.bincount(place, weights=~right)
    return [share(right, found.task).percent(), f"{100 * float((wrong == 0).mean()):.1f}"]


EXPERIMENT = Experiment("official", rows, run, report)
