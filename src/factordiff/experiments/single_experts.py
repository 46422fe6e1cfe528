"""Table 1: the four experts alone.

Claim: two full experts of about a million parameters answer 93.0 % (Trans-IR) and 89.3 % (Conv-IR) of 24,000
held-out grids exactly; the color and occupancy specialists, on their own, 3.3 % and 0.2 %.
Cost: (4 experts + 2 own questions) x 24,000 queries x 100 passes = 14.4 million row-passes.
Expected: specialists near zero exact; their pixel accuracy is the share of foreground (about 32 %) and background
(about 66 %) of the canvas. Asked its own question (the occupancy map with true tokens revealed; the foreground's
colors with the background given), each specialist is a good expert.
"""

from __future__ import annotations

from factordiff.experiments.experiment import Experiment, paper, percent
from factordiff.experiments.pairs import EVERYTHING, SINGLES, single
from factordiff.experiments.runner import Runner
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.findings import read_finding
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec

PAPER = {  # pixel, exact
    "conv-full": (99.3, 89.3),
    "trans-full": (99.5, 93.0),
    "trans-color": (32.4, 3.3),
    "trans-occ": (65.7, 0.2),
}

OWN = {  # what each specialist is asked about
    "trans-occ": RunSpec(("trans-occ",), "single", question="occupancy"),
    "trans-color": RunSpec(("trans-color",), "single", question="color"),
}


def rows() -> list[RunSpec]:
    """The four experts on the whole test list, and the specialists on their own questions."""
    return [*(single(expert) for expert in SINGLES), *OWN.values()]


def run(runner: Runner) -> None:
    """Run them, and note their sizes and what they began with."""
    runner.run(rows())
    for name in sorted({name for row in runner.planned(rows()) for name in row.experts}):
        config = runner.experts(name).config
        began = config["about"].get("started_from", {}).get("weights", "")
        runner.find(size(name), (name,), {}, lambda config=config: int(config["parameters"]))  # type: ignore[misc]
        runner.find(ancestor(name), (name,), {}, lambda began=began: began)  # type: ignore[misc]


def size(expert: str) -> str:
    """The name of the finding that holds an expert's number of parameters."""
    return f"parameters-{expert}"


def ancestor(expert: str) -> str:
    """The name of the finding that holds the weights with which an expert's training began."""
    return f"ancestor-{expert}"


def relatives(archive: RecordFolder) -> list[str]:
    """A sentence for each expert that began with the weights of another one: they are not independent."""
    files = {expert: archive.file(single(expert)) for expert in SINGLES}
    names = {file.about("weights", expert): SINGLES[expert] for expert, file in files.items() if file}
    began = {SINGLES[expert]: read_finding(archive.folder, ancestor(expert)) for expert in SINGLES}
    return [
        f"{name} began with the weights of {names[weights]} and a head of its own: they are relatives, trained on the "
        "same queries."
        for name, weights in began.items()
        if weights in names
    ]


def report(archive: RecordFolder) -> Section:
    """The table, the paper's figures beside ours."""
    sizes = {expert: read_finding(archive.folder, size(expert)) for expert in SINGLES}
    lines = []
    for expert in SINGLES:
        row = single(expert)
        found = archive.outcomes(row)
        pixel, exact = PAPER[expert]
        lines.append(
            (
                SINGLES[expert],
                NOTHING if sizes[expert] is None else f"{sizes[expert]:,}",
                paper(pixel),
                NOTHING if found is None else f"{100 * found.pixel():.1f}",
                paper(exact),
                percent(found, EVERYTHING),
                percent(archive.outcomes(OWN[expert]), EVERYTHING) if expert in OWN else NOTHING,
            )
        )
    headings = (
        "expert",
        "parameters",
        "pixel %, paper",
        "here",
        "exact %, paper",
        "here",
        "own question, exact %",
    )
    return Section(
        "Single experts (Table 1)", tuple(relatives(archive)), tables=(Table(headings, tuple(lines)),)
    )


def findings() -> list[str]:
    """What is noted of each expert."""
    return [noted(name) for name in SINGLES for noted in (size, ancestor)]


EXPERIMENT = Experiment("single-experts", rows, run, report, findings=findings)
