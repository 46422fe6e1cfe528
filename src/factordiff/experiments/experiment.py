"""What an experiment is: a plan of rows, something that runs it, and a section that reads the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from factordiff.evaluation.document import NOTHING, Section
from factordiff.evaluation.outcomes import Archive, Outcomes
from factordiff.evaluation.rows import Row
from factordiff.experiments.workbench import Workbench


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    rows: Callable[[], list[Row]]  # what it runs, as far as that is known beforehand
    run: Callable[[Workbench], None]
    report: Callable[[Archive], Section]


def percent(found: Outcomes | None, planned: int | None = None) -> str:
    """Exact accuracy with its interval; a row on fewer queries than planned says so."""
    if found is None:
        return NOTHING
    text = found.accuracy.percent()
    return text if planned is None or len(found) >= planned else f"{text} (first {len(found):,})"


def paper(figure: float | None) -> str:
    """The paper's figure, if it has one."""
    return NOTHING if figure is None else f"{figure:.1f}"


def not_run(*rows: Row) -> str:
    """The sentence that stands where records are missing."""
    return "Not run yet: " + ", ".join(f"`{row.name}`" for row in rows) + "."
