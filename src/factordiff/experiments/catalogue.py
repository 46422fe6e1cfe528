"""The experiments by name, and the report that reads what they left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from factordiff.errors import Unavailable
from factordiff.experiments import (
    composition,
    compute,
    default_head,
    fitted,
    four,
    official,
    overlap,
    padding,
    paper_networks,
    relatives,
    routing_figures,
    single_experts,
    temperatures,
    voting,
)
from factordiff.experiments.claims import READING
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.opening import opening
from factordiff.experiments.pairs import EVERYTHING
from factordiff.experiments.whole import missing, of_other_runs
from factordiff.experts.registry import SHIPPED, shipped_experts
from factordiff.files import write_together
from factordiff.networks.store import weight_hash
from factordiff.report.code_version import short
from factordiff.report.document import Report, Section, Table, markdown
from factordiff.report.outcomes import RecordFolder
from factordiff.report.page import page
from factordiff.report.tarball import TARBALL

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        composition,
        fitted,
        single_experts,
        overlap,
        voting,
        temperatures,
        routing_figures,
        compute,
        default_head,
        relatives,
        four,
        paper_networks,
        official,
    )
}
FROM_RECORDS = ("report", "pack", "plan")
NAMES = (*EXPERIMENTS, "all", *FROM_RECORDS)
FIRST = ("composition", "fitted", "single-experts")  # sections of the report, before the one on padding
README, PAGE = "README.md", "report.html"
TITLE = "The paper's experiments, run with this library"


def chosen(name: str) -> list[Experiment]:
    """The experiments of that name: one, all, or none for what is made from records alone."""
    if name not in NAMES:
        raise Unavailable(f"experiment: expected one of {', '.join(NAMES)}, got {name!r}")
    if name in FROM_RECORDS:
        return []
    return list(EXPERIMENTS.values()) if name == "all" else [EXPERIMENTS[name]]


def document(folder: Path) -> Report:
    """The report on a folder of records."""
    archive = RecordFolder(folder)
    found = {name: one.report(archive) for name, one in EXPERIMENTS.items()}
    found["composition"] = replace(
        found["composition"], paragraphs=(READING, *found["composition"].paragraphs)
    )
    sections = [
        *(found[name] for name in FIRST),
        padding.report(archive),
        *(section for name, section in found.items() if name not in FIRST),
        provenance(archive),
    ]
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    return Report(TITLE, warning(archive), tuple(sections), opening(archive, verdicts))


def warning(archive: RecordFolder) -> str:
    """What a reader must know first: what is missing to a full run, what is of another run; weights of before."""
    parts = [*missing(EXPERIMENTS, archive), *of_other_runs(archive)]
    told = f"{'; '.join(parts)}. These are not the results of a full run." if parts else ""
    others = other_weights(archive)
    if others:
        told = f"{told} Measured with other weights than those that ship today: {', '.join(others)}.".strip()
    return told


def other_weights(archive: RecordFolder) -> list[str]:
    """The experts of the records that ship today with other weights, or not at all."""
    measured = {
        item
        for path in archive.folder.glob("*.jsonl.gz")
        for item in archive.read(path).about("weights").items()
    }
    today = {name: weight_hash(SHIPPED / name) for name in shipped_experts()}
    return sorted({name for name, digest in measured if digest != today.get(name)})


def provenance(archive: RecordFolder) -> Section:
    """Every record file: queries, wall time, device, commit; and the hashes of data and weights."""
    lines, weights, data = [], {}, set()
    for path in sorted(archive.folder.glob("*.jsonl.gz")):
        file = archive.read(path)
        weights.update(file.about("weights"))
        data.add(file.about("data"))
        where = ", ".join(file.devices), ", ".join(map(short, file.commits))
        lines.append((file.about("row"), f"{len(file.done):,}", f"{file.seconds:.0f}", *where))
    hashes = tuple((name, f"`{digest}`") for name, digest in sorted(weights.items()))
    hashes += tuple(("data", f"`{digest}`") for digest in sorted(data))
    return Section(
        "Where the numbers come from",
        (
            f"Records: `records/`, one file per row, JSON lines in gzip (all in one: `{TARBALL}`, which `reproduce` "
            f"unpacks); {EVERYTHING:,} test queries are listed. [Making the report](../reproducing.md) says how they "
            "are made.",
        ),
        (Table(("part", "sha256"), hashes),),
        long_tables=(
            Table(("row", "queries", "seconds", "device", "commit"), tuple(lines), "Rows", sortable=True),
        ),
    )


def write_report(made: Report, out: Path) -> list[Path]:
    """Write README.md, its pictures and report.html, all of them or none; returns what was written."""
    pictures = {out / "pictures" / f"{picture.name}.png": picture.png for picture in made.pictures}
    texts = {out / README: markdown(made).encode(), out / PAGE: page(made).encode()}
    write_together(pictures | texts)
    return [*pictures, *texts]
