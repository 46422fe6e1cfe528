"""Table "forward passes": what each method costs, counted and timed.

Claim: per-pixel routing costs the two passes per step that any composition of two experts needs, voting 3 (one
expert) or 6 (both), particle correctors 16.
Cost: three batches of each method, at most 6,600 queries x 2 passes x 100 steps = 1.3 M row-passes a row, 9 rows.
Expected: nominal passes as in the paper; executed passes fewer for particles (they share states); wall time follows
the executed passes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from factordiff.evaluation.runs import RunContext, RunSettings
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import FULL_FULL
from factordiff.experiments.runner import Runner
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import RecordFolder
from factordiff.report.records import RecordFile
from factordiff.report.run_spec import RunSpec
from factordiff.report.verdicts import Verdict

FOLDER = "timing"  # of its own: these rows are run for their time
BATCHES = 3
LARGEST = 2_200  # queries in a batch: enough to fill a GPU twice
NEGLIGIBLE = 0.10  # of the time of asking both experts
ONE, _ = FULL_FULL.experts
PAPER = {"routing": 2.0, "vote one": 3.0, "vote both": 6.0, "fkc": 16.0}


def timed() -> dict[str, tuple[str, RunSpec]]:
    """The methods that are timed: the floor first, asking both experts and composing nothing."""
    both = FULL_FULL.row
    return {
        "floor": ("two experts, nothing composed (the floor)", both("floor")),
        "routing": ("per-pixel max", both("routing")),
        "mixture": ("mixture", both("mixture")),
        "geometric-mean": ("average (PoE)", both("geometric-mean")),
        "superdiff": ("density (SuperDiff)", both("superdiff")),
        "vote one": ("majority vote, one expert, N=3", RunSpec((ONE,), "vote")),
        "vote both": ("majority vote across experts, N=3 each", both("vote")),
        "fkc": ("FKC, 8 particles", both("fkc")),
        "rne": ("RNE, 8 particles", both("rne")),
    }


def rows() -> list[RunSpec]:
    """Every method once, in batches of the usual size."""
    return sized(RunSettings())


def of_timing(settings: RunSettings) -> RunSettings:
    """The same settings in batches that are no larger than time can be told from."""
    return replace(settings, batch_size=min(settings.batch_size, LARGEST))


def sized(settings: RunSettings) -> list[RunSpec]:
    """Every method on as many queries as fill the batches."""
    return [replace(row, queries=BATCHES * settings.batch(row)) for _, row in timed().values()]


def run(runner: Runner) -> None:
    """A few batches of each, one method after the other on the same machine."""
    context: RunContext = replace(runner.context, folder=runner.context.folder / FOLDER)
    alone = replace(runner, settings=of_timing(runner.settings))
    alone.run(sized(alone.settings), context)
    runner.stopped |= alone.stopped


def measured(archive: RecordFolder) -> list[RecordFile | None]:
    """The records of each timed row, where there are any."""
    inner = RecordFolder(Path(archive.folder) / FOLDER)
    return [None if inner.outcomes(row) is None else inner.file(row) for _, row in timed().values()]


def seconds_per_query(file: RecordFile) -> float:
    """Wall time; the first batch warms up and is left out if there are more."""
    batches = file.batches[1:] or file.batches
    return sum(batch.seconds for batch in batches) / sum(len(batch.records) for batch in batches)


def report(archive: RecordFolder) -> Section:
    """Passes per step and wall time relative to the floor."""
    inner = RecordFolder(Path(archive.folder) / FOLDER)
    floor = inner.file(timed()["floor"][1])
    lines = []
    for key, (label, row) in timed().items():
        found, file = inner.outcomes(row), inner.file(row)
        theirs = f"{PAPER[key]:g}" if key in PAPER else NOTHING
        if found is None or file is None:
            lines.append((label, theirs, *[NOTHING] * 4))
            continue
        steps = min(file.about("settings", "steps"), 100)
        relative = NOTHING if floor is None else f"{seconds_per_query(file) / seconds_per_query(floor):.2f}x"
        lines.append(
            (
                label,
                theirs,
                f"{found.nominal.mean() / steps:.2f}",
                f"{found.executed.mean() / steps:.2f}",
                relative,
                f"{1000 * seconds_per_query(file):.2f}",
            )
        )
    headings = (
        "method (two experts)", "passes per step, paper", "nominal", "executed", "wall time / floor", "ms per query"
    )  # fmt: skip
    devices = sorted(
        {device for _, row in timed().values() if (file := inner.file(row)) for device in file.devices}
    )
    caption = f"On {', '.join(devices)}." if devices else ""
    return Section(
        "Compute (Table 7)", tables=(Table(headings, tuple(lines), caption),), verdicts=(_verdict(inner),)
    )


def _verdict(inner: RecordFolder) -> Verdict:
    claim = (
        "routing costs what any composition must: its own work is negligible "
        f"(read as: below {100 * NEGLIGIBLE:.0f} %)"
    )
    rule = (
        "Confirmed: as many nominal passes as asking both experts and composing nothing, and a wall time less than "
        f"{100 * NEGLIGIBLE:.0f} % above it, measured once on this device. Not confirmed: more of either."
    )
    rows_ = [timed()[key][1] for key in ("floor", "routing")]
    files = [file for row in rows_ if (file := inner.file(row)) is not None]
    found = [one for row in rows_ if (one := inner.outcomes(row)) is not None]
    if len(files) < 2 or len(found) < 2:
        return Verdict(claim, "Table 7", "undecided here", "not run", rule)
    passes = [float(one.nominal.mean()) for one in found]
    ratio = seconds_per_query(files[1]) / seconds_per_query(files[0])
    holds = passes[0] == passes[1] and ratio < 1 + NEGLIGIBLE
    figures = (
        f"nominal passes per query {passes[1]:.0f} and {passes[0]:.0f}; wall time {ratio:.2f} of the floor's"
    )
    return Verdict(claim, "Table 7", "confirmed" if holds else "not confirmed", figures, rule)


EXPERIMENT = Experiment("compute", rows, run, report)
