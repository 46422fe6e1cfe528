"""Table "routing temperatures": what sharpening the occupancy expert's confidence does to Col+Occ.

Claim: Col+Occ needs a temperature of 0.25 for the occupancy expert; Full+Full and Occ+Full need none.
Cost: 7 temperatures x 2 occupancy experts x 600 validation queries x 200 = 1.7 M row-passes.
Expected: an optimum well below 1 for the expert whose head began at zero (its colors stay flat, so a sharpened
margin is large at background only); a worse one for the default head, whose foreground colors are peaked.
"""

from __future__ import annotations

from factordiff.evaluation.calibration import confidence_curve
from factordiff.experiments.experiment import Experiment, percent
from factordiff.experiments.pairs import BEYOND, COL_OCC, DEFAULT_HEAD, PAIRS, SINGLES, TUNING, ExpertGroup
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED
from factordiff.experiments.runner import Runner
from factordiff.report.charts import curves
from factordiff.report.document import NOTHING, Picture, Section, Table
from factordiff.report.findings import read_finding
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec
from factordiff.report.verdicts import MARGIN, NOT_WORSE, Verdict

EXPERTS = (*SINGLES, "trans-occ-default-head")
HEADS = {"zero head": COL_OCC, "default head": DEFAULT_HEAD}
TEMPERATURES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def curve(expert: str) -> str:
    """The name of the finding that holds an expert's confidence against its correctness."""
    return f"confidence-{expert}"


def at_every_temperature(pair: ExpertGroup) -> list[RunSpec]:
    """Routing with each temperature for the occupancy expert."""
    return [pair.tempered(temperature, TUNING) for temperature in TEMPERATURES]


def rows() -> list[RunSpec]:
    """Both occupancy experts at every temperature."""
    return [row for pair in HEADS.values() for row in at_every_temperature(pair)]


def run(runner: Runner) -> None:
    """Run them, and hold every expert's confidence against its correctness."""
    runner.run(rows())
    queries = runner.queries("validation")
    for name in EXPERTS:
        runner.find(
            curve(name),
            (name,),
            {"queries": runner.size(TUNING), "truth": True},
            lambda name=name: confidence_curve(  # type: ignore[misc]
                runner.experts(name).expert, queries, runner.size(TUNING)
            ),
        )


def report(archive: RecordFolder) -> Section:
    """Accuracy by temperature, confidence against correctness, and how the foreground is split."""
    found = {
        head: [archive.outcomes(row) for row in at_every_temperature(pair)] for head, pair in HEADS.items()
    }
    lines = [
        (
            f"{temperature:g}",
            "its choice" if temperature == 0.25 else NOTHING,
            *(percent(found[head][place], TUNING) for head in HEADS),
        )
        for place, temperature in enumerate(TEMPERATURES)
    ]
    headings = ("T of the occupancy expert", "paper", *(f"exact %, {head}" for head in HEADS))
    tables = [Table(headings, tuple(lines), f"Col+Occ, the first {TUNING:,} validation queries.")]
    pictures = []
    drawn = {
        head: (
            [t for t, one in zip(TEMPERATURES, rows_, strict=True) if one is not None],
            [100 * float(one.exact.mean()) for one in rows_ if one is not None],
        )
        for head, rows_ in found.items()
        if any(one is not None for one in rows_)
    }
    if drawn:
        chart = curves(drawn, "temperature of the occupancy expert", "exact %", log_x=True)
        pictures.append(Picture("temperatures", chart, "Col+Occ on validation by temperature."))
    confidence = _confidence(archive)
    if confidence:
        tables.append(_shares(confidence))
        lines_ = {}
        for name, curve in confidence.items():
            cells, right, margins = ([sum(pair) for pair in zip(*curve[key], strict=True)] for key in _SUMS)
            used = [place for place, count in enumerate(cells) if count]
            lines_[name] = (
                [margins[place] / cells[place] for place in used],
                [right[place] / cells[place] for place in used],
            )
        chart = curves(lines_, "mean margin of the cell's top two values", "share right", diagonal=True)
        caption = "Confidence against correctness at hidden cells, all ten values."
        pictures.append(Picture("confidence", chart, caption))
    return Section("Routing temperatures (Table 6)", (), tuple(tables), tuple(pictures), _verdicts(archive))


def _verdicts(archive: RecordFolder) -> tuple[Verdict, ...]:
    """The printed temperatures against those that validation chose, on test."""
    found = []
    for pair in PAIRS:
        printed, fitted = (protocol.routed(archive, pair) for protocol in (AS_PRINTED, ALL_FITTED))
        contest = None if printed is None or fitted is None else printed.first(BEYOND).against(fitted)
        found.append(
            Verdict(
                f"{pair.name}: the printed routing temperatures are not worse than fitted ones (margin "
                f"{100 * MARGIN:.1f} points)",
                "Table 6",
                "undecided here" if contest is None else NOT_WORSE.judge(contest.gain),
                "not run" if contest is None else f"printed minus fitted: {contest.points()}",
                NOT_WORSE.sentence(),
                f"{AS_PRINTED.name} against {ALL_FITTED.name}",
            )
        )
    return tuple(found)


_SUMS = ("cells", "right", "margin")


def _confidence(archive: RecordFolder) -> dict[str, dict[str, list[list[float]]]]:
    found = {name: read_finding(archive.folder, curve(name)) for name in EXPERTS}
    return {name: curve for name, curve in found.items() if curve is not None}


def _shares(confidence: dict[str, dict[str, list[list[float]]]]) -> Table:
    """Background and foreground apart, and the largest color's share of the foreground."""
    lines = []
    for name, curve in confidence.items():
        sides = []
        for side in (0, 1):
            cells = max(sum(curve["cells"][side]), 1.0)
            sides += [
                f"{100 * sum(curve['right'][side]) / cells:.1f}",
                f"{sum(curve['margin'][side]) / cells:.3f}",
            ]
        shares = ", ".join(f"{share:.3f}" for share in curve["largest_color_share"])
        truth = [", ".join(f"{value:.2g}" for value in side) for side in curve.get("truth", ([], []))]
        lines.append((name, *sides, shares, *(text or NOTHING for text in truth)))
    headings = (
        "expert", "right at background, %", "mean margin there", "right at foreground, %", "mean margin there",
        "largest color's share of the foreground, 10 / 50 / 90 %",
        "log-probability of the truth at background, 10 / 50 / 90 %", "at foreground",
    )  # fmt: skip
    return Table(
        headings,
        tuple(lines),
        "Hidden cells of half-shown answers; a flat split has a share of 0.111. Who gives the truth a very low "
        "log-probability forbids it, and in a product nobody can overrule that but by a larger exponent.",
    )


EXPERIMENT = Experiment("temperatures", rows, run, report, findings=lambda: list(map(curve, EXPERTS)))
