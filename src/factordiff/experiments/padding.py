"""Whether it is the padding: every exact figure of Tables 1 and 2 on the whole canvas, and cut to the right grid."""

from __future__ import annotations

from factordiff.experiments.experiment import percent
from factordiff.experiments.pairs import PAIRS, SINGLES, single
from factordiff.experiments.protocols import PROTOCOLS
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder, read_outcomes
from factordiff.report.records import SUFFIX
from factordiff.report.statistics import share

HEADINGS = ("experts and method", "canvas exact %", "cropped exact %", "points between")


def report(archive: RecordFolder) -> Section:
    """A table for the experts alone and one for each protocol: all 100 cells, the grid alone, and what lies between.

    On the page also every other row of the report.
    """
    alone = [_line(label, archive.outcomes(single(expert))) for expert, label in SINGLES.items()]
    tables = [Table(HEADINGS, tuple(alone), "Each expert alone.")]
    for protocol in PROTOCOLS:
        lines: list[tuple[str, ...] | None] = []
        for pair in PAIRS:
            lines += [None] if lines else []
            found = {**protocol.per_sample(archive, pair), "**per pixel**": protocol.routed(archive, pair)}
            lines += [_line(f"{pair.name}: {label}", one) for label, one in found.items()]
        tables.append(Table(HEADINGS, tuple(lines), f"{protocol.name.capitalize()}."))
    text = (
        "A canvas has 100 cells; a grid is smaller and padded with color 0, which the paper counts (its color expert's "
        "32.4 % of pixels is the share of foreground on such canvases). The color expert was never taught background, "
        "so it fails at the padding of nearly every canvas; cut to the right grid, many of its answers are right. What "
        "an occupancy expert adds there is mostly the padding, and what it adds to the grid itself is the difference "
        "between the color expert's cropped figure and that of the composition.",
    )
    return Section("Is it the padding?", text, tuple(tables), long_tables=(_every_row(archive),))


def _every_row(archive: RecordFolder) -> Table:
    """All rows that were run, by their names in the plan."""
    files = [archive.read(path) for path in sorted(archive.folder.glob(f"*{SUFFIX}"))]
    lines = [_line(file.about("row"), read_outcomes(file)) for file in files]
    return Table(HEADINGS, tuple(lines), "Every row, canvas and cropped", sortable=True)


def _line(label: str, found: Outcomes | None) -> tuple[str, ...]:
    if found is None or found.cropped is None:
        return (label, percent(found), NOTHING, NOTHING)
    cut = share(found.cropped, found.task)
    between = 100 * (cut.value - found.accuracy.value)
    return (label, found.accuracy.percent(), cut.percent(), f"{between:.1f}")
