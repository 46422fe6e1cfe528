"""Whether a folder of records is one full run: what is missing to it, and what is of another run.

A search leads to rows that no plan knows beforehand. They are asked for here too: a run that ended between a search
and its rows has all that was planned, and holes in its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from factordiff.evaluation.runs import RunSettings
from factordiff.experiments import compute, official
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import BEYOND, expected
from factordiff.experiments.tuning import choice, fitted_as
from factordiff.report.findings import has_any
from factordiff.report.outcomes import RecordFolder
from factordiff.report.records import HOW
from factordiff.report.run_spec import RunSpec

FULL = ("steps", "particles", "runs", "softness", "seed")  # settings that a full run leaves as they are
ALIKE = ("dtype", "cycles", "reveal")  # and those that are whatever they are in all rows alike


def missing(experiments: Mapping[str, Experiment], archive: RecordFolder) -> list[str]:
    """What a full run has and this one has not, each in a few words; nothing if it is whole."""
    searches = [
        (one.name, *trial, choice(archive, *trial))
        for one in experiments.values()
        for trial in one.trials()
        if expected(trial[0].row("mixture"))
    ]
    rows = [row for one in experiments.values() if one.name != compute.EXPERIMENT.name for row in one.rows()]
    rows += [
        fitted_as(group, method, chosen.options, None if name == "overlap" else BEYOND)
        for name, group, method, chosen in searches
        if chosen is not None
    ]
    rows += official.led_to(archive) if official.EXPERIMENT.name in experiments else []
    parts = _of_rows({(row.name, row.queries): row for row in rows if expected(row)}.values(), archive)
    unfitted = sum(chosen is None for *_, chosen in searches)
    untimed = sum(row is None for row in compute.measured(archive))
    unfound = [
        name for one in experiments.values() for name in one.findings() if not has_any(archive.folder, name)
    ]
    return [
        *parts,
        *([f"{unfitted} methods are not fitted yet"] if unfitted else []),
        *([f"{untimed} rows of Table 7 are not timed yet"] if untimed else []),
        *([f"{len(unfound)} maps, curves or sizes are not made yet ({unfound[0]})"] if unfound else []),
    ]


def _of_rows(rows: Iterable[RunSpec], archive: RecordFolder) -> list[str]:
    """Rows on fewer queries than planned, and rows that are not run at all; the same row counts once."""
    known, short, unrun = set(), {}, set()
    for row in rows:
        known.add(row.name)
        found = archive.outcomes(row)
        if found is None:
            unrun.add(row.name)
        elif len(found) < planned_queries(row, found.file.about("listed")):
            short[row.name] = len(found)
    parts = []
    if short:
        fewest = min(short, key=lambda name: (short[name], name))
        have = "row has" if len(short) == 1 else "rows have"
        parts.append(
            f"A SUBSET: {len(short)} {have} fewer queries than the full run ({fewest}: only {short[fewest]:,})"
        )
    return parts + ([f"{len(unrun)} of {len(known)} rows are not run yet"] if unrun else [])


def of_other_runs(archive: RecordFolder) -> list[str]:
    """What records say of themselves that cannot stand in one report: other settings, or several data sets."""
    usual, data = RunSettings(), set()
    found: dict[str, dict[str, str]] = {}  # setting, value, a file that says so
    for path in sorted(archive.folder.glob("*.jsonl.gz")):
        header = archive.read(path).header
        data.add(header.get("data"))
        for name, value in header.get("settings", {}).items():
            if name not in HOW:
                found.setdefault(name, {}).setdefault(str(value), path.name)
    parts = []
    for name, values in sorted(found.items()):
        others = [value for value in values if name in FULL and value != str(getattr(usual, name))]
        if others or (name in ALIKE and len(values) > 1):
            said = ", ".join(f"{value} in {values[value]}" for value in others or values)
            parts.append(f"rows are of other settings ({name}: {said})")
    return parts + ([f"rows are of {len(data)} data sets"] if len(data) > 1 else [])


def planned_queries(row: RunSpec, listed: int) -> int:
    """How many queries a full run of the row has."""
    return listed if row.queries is None else min(row.queries, listed)
