"""A group's methods in two tables, one for each protocol, each row with its difference to one of them."""

from __future__ import annotations

from collections.abc import Mapping

from factordiff.experiments.experiment import percent
from factordiff.experiments.fitted import LEARNED, fitted_cell, learned_cell
from factordiff.experiments.learned import learned_row
from factordiff.experiments.pairs import BEYOND, CAPTION, ExpertGroup
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED
from factordiff.experiments.tuning import fitted_outcomes
from factordiff.report.document import NOTHING, Table
from factordiff.report.outcomes import Outcomes, RecordFolder

Reference = tuple[
    str, Outcomes | None
]  # what a difference is to: its name, and its outcomes if there are any


def printed_table(
    archive: RecordFolder, group: ExpertGroup, methods: Mapping[str, str], reference: Reference
) -> Table:
    """Nothing fitted; both sides of a difference are cut to the same queries."""
    lines = []
    for method, label in methods.items():
        found = AS_PRINTED.find(archive, group, method)
        first = None if found is None else found.first(BEYOND)
        lines.append((label, percent(first, BEYOND), minus(first, reference[1])))
    caption = f"{AS_PRINTED.name.capitalize()}, nothing fitted. {CAPTION}"
    return Table(("method", "exact %", f"minus {reference[0]}"), tuple(lines), caption)


def fitted_table(
    archive: RecordFolder, group: ExpertGroup, methods: Mapping[str, str], reference: Reference
) -> Table:
    """All fitted, with the numbers that validation chose, and the learned router."""
    lines = []
    for method, label in methods.items():
        found = fitted_outcomes(archive, group, method, BEYOND)
        lines.append((label, fitted_cell(archive, group, method), minus(found, reference[1])))
    learned = archive.outcomes(learned_row(group, BEYOND))
    lines.append((LEARNED, learned_cell(archive, group), minus(learned, reference[1])))
    headings = ("method and what is fitted", "exact %", f"minus {reference[0]}")
    return Table(headings, tuple(lines), f"{ALL_FITTED.name.capitalize()}. {CAPTION}")


def minus(found: Outcomes | None, reference: Outcomes | None) -> str:
    """The paired difference with its interval over tasks."""
    if found is None or reference is None or found is reference:
        return NOTHING
    return found.against(reference).gain.points()
