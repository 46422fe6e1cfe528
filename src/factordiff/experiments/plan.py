"""What a full run asks, row by row, and how long that takes on the device of the records that there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from factordiff.evaluation.runs import PARTICLE_METHODS
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import BEYOND, BUDGET, EVERYTHING, TUNING, expected
from factordiff.experiments.tuning import choice, fitted_as
from factordiff.report.document import NOTHING, Table
from factordiff.report.outcomes import RecordFolder
from factordiff.report.records import RecordFile
from factordiff.report.run_spec import RunSpec

LISTED = {"test": EVERYTHING, "validation": 4_800, "official": 130, "unseen": 60}
ENOUGH = 600  # queries of a row that says how fast its method is: the first ones are slow
ROUTER_SECONDS = 40.0  # of fitting one: not in the records
START_SECONDS = 60.0  # of a call: loading, compiling
TIMING_SECONDS = 120.0  # of the rows that are run for their time alone


@dataclass(frozen=True)
class PlannedRow:
    """A row that a full run has, or a search of so many rows: queries in all, and those that have no record yet."""

    experiment: str
    row: RunSpec
    label: str  # the row's name, unless it is a search, or what that leads to is not known yet
    queries: int
    left: int


def planned(experiments: Iterable[Experiment], archive: RecordFolder) -> list[PlannedRow]:
    """Every row once, with the most queries that anybody asks of it; searches on validation, and what they lead to."""
    found: dict[str, PlannedRow] = {}
    for one in experiments:
        if one.name == "compute":  # whose rows are run for their time alone
            continue
        for row in one.rows():
            _add(found, one.name, row, archive)
        for group, method in one.trials():
            usual = fitted_as(group, method, {}, TUNING, "validation")
            if not expected(usual):
                continue
            chosen = choice(archive, group, method)
            label = f"validation.{'+'.join(group.experts)}.{method}, {BUDGET} settings"
            found[label] = PlannedRow(
                one.name, usual, label, BUDGET * TUNING, 0 if chosen else BUDGET * TUNING
            )
            queries = None if one.name == "overlap" else BEYOND
            options = {} if chosen is None else chosen.options
            row = fitted_as(group, method, options, queries)
            # Before it is known which row that is, it is counted as one of its own.
            _add(found, one.name, row, archive, "" if chosen else f"{row.name}, fitted")
    return list(found.values())


def _add(
    found: dict[str, PlannedRow], experiment: str, row: RunSpec, archive: RecordFolder, label: str = ""
) -> None:
    if not expected(row):
        return
    wanted = min(row.queries or EVERYTHING, LISTED[row.split])
    known = None if label else archive.outcomes(replace(row, queries=wanted))
    name = label or row.name
    if name not in found or found[name].queries < wanted:
        left = wanted - (0 if known is None else len(known))
        found[name] = PlannedRow(experiment, row, name, wanted, left)


class Speeds:
    """Seconds per query, from the records: the median of rows of the same method, of as many experts."""

    def __init__(self, files: Iterable[RecordFile]) -> None:
        seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
        for file in files:
            if len(file.done) >= ENOUGH:
                _, experts, method = file.about("row").split(".")[:3]
                seconds[experts.count("+") + 1, method].append(file.seconds / len(file.done))
        self.known = {kind: median(some) for kind, some in seconds.items()}

    def of(self, row: RunSpec) -> float | None:
        """Of a row: what such rows took, or what others of its kind took, by the number of experts; None if unknown."""
        experts = len(row.experts)
        if (experts, row.method) in self.known:
            return self.known[experts, row.method]
        particles = row.method in PARTICLE_METHODS
        alike = [
            one * experts / number
            for (number, method), one in self.known.items()
            if (method in PARTICLE_METHODS) == particles and method != "vote" and number > 1
        ]
        return median(alike) if alike else None


def plan_table(rows: list[PlannedRow], speeds: Speeds) -> tuple[Table, float]:
    """The plan as a table, and the minutes that are left of it, without starts and routers."""
    lines, total = [], 0.0
    for one in rows:
        speed = speeds.of(one.row)
        seconds = None if speed is None else one.left * speed
        total += seconds or 0.0
        cost = NOTHING if seconds is None else f"{seconds:.0f}"
        lines.append((one.experiment, one.label, f"{one.queries:,}", f"{one.left:,}", cost))
    headings = ("experiment", "row", "queries", "left", "seconds left")
    return Table(headings, tuple(lines), "What a full run asks."), total / 60
