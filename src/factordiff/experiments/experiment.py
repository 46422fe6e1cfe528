"""What an experiment is: a plan of rows, something that runs it, and a section that reads the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from factordiff.experiments.pairs import ExpertGroup
from factordiff.experiments.runner import Runner
from factordiff.report.document import NOTHING, Section
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    rows: Callable[[], list[RunSpec]]  # what it runs, as far as that is known beforehand
    run: Callable[[Runner], None]
    report: Callable[[RecordFolder], Section]
    trials: Callable[[], list[tuple[ExpertGroup, str]]] = list  # searches on validation: a group, a method
    findings: Callable[[], list[str]] = list  # the names of what it makes besides rows: maps, curves, sizes


def running(rows: Callable[[], list[RunSpec]]) -> Callable[[Runner], None]:
    """What runs an experiment that is its rows and nothing else."""
    return lambda runner: runner.run(rows())


def percent(found: Outcomes | None, planned: int | None = None) -> str:
    """Exact accuracy with its interval; a row on fewer queries than planned says so."""
    if found is None:
        return NOTHING
    text = found.accuracy.percent()
    return text if planned is None or len(found) >= planned else f"{text} (first {len(found):,})"


def paper(figure: float | None) -> str:
    """The paper's figure, if it has one."""
    return NOTHING if figure is None else f"{figure:.1f}"


def not_run(*rows: RunSpec) -> str:
    """The sentence that stands where records are missing."""
    return "Not run yet: " + ", ".join(f"`{row.name}`" for row in rows) + "."
