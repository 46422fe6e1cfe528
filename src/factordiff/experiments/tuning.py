"""What is chosen on validation queries, never on test: every method's own numbers, by one search with one budget.

A routing temperature is one number for each expert, the same at every cell; so are exponents of a product and weights
of a mixture. Who fits the one must fit the others, or the comparison is with a baseline that was not given its chance.
A number that is best at the end of what was tried is followed past that end, as `compare` and `fit` do.
A search is a function of the records: where the next trial has none, that row is run, and the search begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from factordiff.evaluation.runs import PARTICLE_METHODS
from factordiff.experiments.pairs import BUDGET, PAST_ENDS, TUNING, ExpertGroup
from factordiff.experiments.runner import Runner
from factordiff.fitting.search import Coordinate, Search, fittable, search, tie_breaks
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec

READINGS = {"highest-target": "highest target", "draw": "weighted draw"}
USUAL_RESAMPLING = 0.5
# What evidence may be earned inside of, and from: the factors of every world, and the demonstrations of this one.
EVIDENCE = {"factors": ("near2", "component", "whole"), "demonstration_evidence": ("none", "all")}


@dataclass(frozen=True)
class FittedChoice:
    """What validation chose for a method: its options and reading, and all that was tried, in order."""

    options: dict[str, Any]
    reading: str
    share: float  # of the chosen setting, exact
    edge: bool  # some number is the last one that was tried
    trials: tuple[tuple[RunSpec, float], ...]


def numbers(method: str, experts: int) -> list[Coordinate]:
    """What is searched for; in methods that draw, the first expert's exponent too, which says how sharp the whole is.

    FKC draws from the product itself; RNE from a mixture, whose weights are searched for as well.
    """
    if method not in PARTICLE_METHODS:
        return fittable(method).coordinates(experts, choices=EVIDENCE if method == "evidence" else None)
    proposal = [Coordinate("weights", expert) for expert in range(1, experts)] if method == "rne" else []
    exponents = [Coordinate("beta", expert) for expert in range(experts)]
    return [Coordinate("resampling", choices=(USUAL_RESAMPLING, 1.0)), *proposal, *exponents]


def fitted_as(
    group: ExpertGroup, method: str, options: Mapping[str, Any], queries: int | None, split: str = "test"
) -> RunSpec:
    """The row of a method with these options; with none of them it is the row as the paper has it."""
    left = dict(options)
    own = {name: left.pop(name) for name in ("beta", "weights", "factors") if name in left}
    if left.get("resampling") == USUAL_RESAMPLING:
        del left["resampling"]
    temperatures = left.pop("temperatures", (1.0,) * len(group.experts)) if method == "routing" else None
    return RunSpec(
        group.experts,
        method,
        split,
        temperatures=temperatures,
        resampling=left.pop("resampling", None),
        queries=queries,
        others=tuple(sorted(left.items())),
        **own,
    )


class _NotRun(Exception):
    def __init__(self, row: RunSpec) -> None:
        self.row = row


def readings(archive: RecordFolder, row: RunSpec) -> dict[str, Outcomes]:
    """A row's outcomes by reading; methods without particles have one."""
    asked = READINGS if row.method in PARTICLE_METHODS else ("highest-target",)
    found = {reading: archive.outcomes(row, reading) for reading in asked}
    return {reading: one for reading, one in found.items() if one is not None}


def _searched(archive: RecordFolder, group: ExpertGroup, method: str, queries: int | None) -> Search:
    """The search on the records; a trial without records of so many queries (as the first has) is not run."""
    wanted = queries

    def value(options: dict[str, Any]) -> float:
        nonlocal wanted
        row = fitted_as(group, method, options, TUNING, "validation")
        found = readings(archive, row)
        if not found or len(next(iter(found.values()))) < (wanted or 1):
            raise _NotRun(row)
        wanted = wanted or len(next(iter(found.values())))
        return max(float(one.exact.mean()) for one in found.values())

    experts = len(group.experts)
    coordinates, ties = numbers(method, experts), tie_breaks(experts)
    return search(coordinates, experts, BUDGET, value, beyond=PAST_ENDS, ties=ties)


def choice(archive: RecordFolder, group: ExpertGroup, method: str) -> FittedChoice | None:
    """What validation chose; None before all trials are run."""
    try:
        found = _searched(archive, group, method, None)
    except _NotRun:
        return None
    trials = [fitted_as(group, method, options, TUNING, "validation") for options in found.settings]
    heard = readings(archive, trials[found.chosen])
    reading = max(heard, key=lambda name: float(heard[name].exact.mean()))
    return FittedChoice(
        found.best,
        reading,
        found.values[found.chosen],
        found.edge,
        tuple(zip(trials, found.values, strict=True)),
    )


def next_trial(archive: RecordFolder, group: ExpertGroup, method: str, queries: int) -> RunSpec | None:
    """The row that the search asks for next; None when it is over."""
    try:
        _searched(archive, group, method, queries)
    except _NotRun as missing:
        return missing.row
    return None


def tune(runner: Runner, group: ExpertGroup, method: str) -> bool:
    """Run the trials of a search; whether it came to its end, which a deadline or a selection of rows may prevent."""
    if not runner.asks_for(group.experts, method):
        return False
    queries = min(runner.size(TUNING), len(runner.queries("validation")))
    archive, before = runner.archive, None
    while (row := next_trial(archive, group, method, queries)) is not None:
        if row == before:
            return False
        # All of its batches, whatever part this call takes of other rows: something is decided by it.
        runner.run([row], replace(runner.context, part=(0, 1)))
        archive.forget(row)
        before = row
    return True


def fitted_row(
    archive: RecordFolder, group: ExpertGroup, method: str, queries: int | None, split: str = "test"
) -> RunSpec | None:
    """The method with what validation chose; None before that is known."""
    found = choice(archive, group, method)
    return None if found is None else fitted_as(group, method, found.options, queries, split)


def fitted_outcomes(
    archive: RecordFolder, group: ExpertGroup, method: str, queries: int | None, split: str = "test"
) -> Outcomes | None:
    """What came of it, read as validation chose."""
    found = choice(archive, group, method)
    if found is None:
        return None
    return archive.outcomes(fitted_as(group, method, found.options, queries, split), found.reading)
