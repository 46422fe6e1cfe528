"""Records made by hand: the same number of right answers in every task, so that figures are known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from factordiff.experiments.pairs import ExpertGroup, single
from factordiff.experiments.tuning import next_trial
from factordiff.report.outcomes import RecordFolder
from factordiff.report.record import Record
from factordiff.report.records import Batch, append, open_records
from factordiff.report.run_spec import RunSpec

TASKS, PER_TASK = 20, 30
QUERIES = TASKS * PER_TASK
TRIAL = 200  # queries of a trial


def share(rate: float, offset: int = 0) -> np.ndarray:
    """The same number of right answers in every task."""
    number = np.arange(QUERIES) // TASKS
    return (number + offset) % PER_TASK < round(rate * PER_TASK)


def rated(rate: float) -> np.ndarray:
    """So many of a trial's answers right, to the single query."""
    return np.arange(TRIAL) < round(rate * TRIAL)


def write(
    folder: Path, row: RunSpec, right: np.ndarray, drawn: np.ndarray | None = None, tasks: int = TASKS
) -> None:
    """A row's file; a wrong answer differs in two cells, of which one is padding."""
    path = row.file(folder)
    about = {"row": row.name, "data": "d", "weights": {name: name for name in row.experts}, "listed": QUERIES}
    open_records(path, {**about, "settings": {"steps": 128}})
    records = tuple(
        Record(
            query,
            f"task{query % tasks:04d}",
            query // tasks,
            () if right[query] else (5, 6),
            200,
            150,
            0,
            None if drawn is None else () if drawn[query] else (7,),
            shape=(3, 3),
        )
        for query in range(len(right))
    )
    append(path, Batch(records, 2.0, "a device", "c0ffee"))


def write_pair(folder: Path, pair: ExpertGroup, rates: dict[str, float], singles: tuple[float, ...]) -> None:
    """The experts alone, and methods as the paper has them."""
    for name, rate in zip(pair.experts, singles, strict=True):
        if not single(name).file(folder).exists():
            write(folder, single(name), share(rate))
    for method, rate in rates.items():
        drawn = share(rate - 0.1) if method in ("fkc", "rne") else None
        write(folder, pair.row(method), share(rate), drawn)


def write_search(
    folder: Path,
    group: ExpertGroup,
    method: str,
    rate: Callable[[RunSpec], float],
    drawn: float | None = None,
) -> list[RunSpec]:
    """All trials of a search, each with its rate (and the other reading so much better); the rows in order."""
    tried: list[RunSpec] = []
    archive = RecordFolder(folder)
    while (row := next_trial(archive, group, method, 1)) is not None:
        assert row not in tried
        write(folder, row, rated(rate(row)), None if drawn is None else rated(rate(row) + drawn))
        tried.append(row)
    return tried
