"""A row's outcomes as arrays, read from its records, and two rows on the queries they share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from factordiff.report.fixed_tasks import share_here
from factordiff.report.paired import Contest, contest
from factordiff.report.records import RecordFile, read_records
from factordiff.report.run_spec import RunSpec
from factordiff.report.statistics import Estimate, share


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What happened to each query, in the order of the list."""

    query: np.ndarray
    task: np.ndarray
    exact: np.ndarray
    wrong: np.ndarray  # how many cells
    nominal: np.ndarray
    executed: np.ndarray
    grid: np.ndarray | None  # right once cut to the inferred shape
    cropped: np.ndarray | None  # right once cut to the right shape: what the padding hides
    file: RecordFile

    def __len__(self) -> int:
        return len(self.query)

    def first(self, limit: int | None) -> Outcomes:
        """The outcomes of the list's first queries."""
        return self if limit is None else self.where(self.query < limit)

    def where(self, keep: np.ndarray) -> Outcomes:
        """The outcomes of some queries (bool per query)."""
        each = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "file"}
        kept: dict[str, Any] = {name: one if one is None else one[keep] for name, one in each.items()}
        return Outcomes(**kept, file=self.file)

    @cached_property
    def accuracy(self) -> Estimate:
        """The share of exact grids, with its interval over tasks."""
        return share(self.exact, self.task)

    @cached_property
    def accuracy_here(self) -> Estimate | None:
        """The same with its interval on exactly these tasks; None where a task has one query."""
        return share_here(self.exact, self.task)

    def pixel(self, cells: int = 100) -> float:
        """The share of right cells."""
        return float(1 - self.wrong.mean() / cells)

    def against(self, other: Outcomes) -> Contest:
        """The paired difference: the row minus another, on the queries that both have; computed once."""
        if other not in self._contests:
            _, mine, theirs = np.intersect1d(self.query, other.query, return_indices=True)
            self._contests[other] = contest(self.exact[mine], other.exact[theirs], self.task[mine])
        return self._contests[other]

    @cached_property
    def _contests(self) -> dict[Outcomes, Contest]:
        return {}

    def per_task(self) -> dict[str, float]:
        """Each task's share of exact grids."""
        names, place = np.unique(self.task, return_inverse=True)
        right = np.bincount(place, weights=self.exact) / np.bincount(place)
        return {str(name): float(value) for name, value in zip(names, right, strict=True)}

    def per_task_counts(self) -> dict[str, int]:
        """How many queries each task has here."""
        names, counts = np.unique(self.task, return_counts=True)
        return {str(name): int(count) for name, count in zip(names, counts, strict=True)}


def read_outcomes(file: RecordFile, reading: str = "highest-target") -> Outcomes | None:
    """A record file as arrays; a particle method's answer is read as asked. None if it has no record yet."""
    records = file.records
    if not records:
        return None
    drawn = reading == "draw" and records[0].drawn is not None
    cells = [(record.drawn or ()) if drawn else record.wrong for record in records]
    wrong = np.array([len(some) for some in cells])
    cropped = [record.cropped(some) for record, some in zip(records, cells, strict=True)]
    grids = [record.drawn_grid if drawn else record.grid for record in records]
    return Outcomes(
        np.array([record.query for record in records]),
        np.array([record.task for record in records]),
        wrong == 0,
        wrong,
        np.array([record.nominal for record in records]),
        np.array([record.executed for record in records]),
        None if None in grids else np.array(grids, dtype=bool),
        None if None in cropped else np.array(cropped, dtype=bool),
        file,
    )


def aligned(*rows: Outcomes) -> list[Outcomes]:
    """The rows on the queries that all of them have."""
    shared = rows[0].query
    for row in rows[1:]:
        shared = np.intersect1d(shared, row.query)
    return [row.where(np.isin(row.query, shared)) for row in rows]


class RecordFolder:
    """All record files of a folder, each read once, when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, RecordFile] = {}
        self._outcomes: dict[tuple[Path, str, int | None], Outcomes | None] = {}

    def file(self, row: RunSpec) -> RecordFile | None:
        """The row's record file, if there is one."""
        path = row.file(self.folder)
        return self.read(path) if path in self._files or path.exists() else None

    def read(self, path: Path) -> RecordFile:
        """A record file, read once."""
        if path not in self._files:
            self._files[path] = read_records(path)
        return self._files[path]

    def outcomes(self, row: RunSpec, reading: str = "highest-target") -> Outcomes | None:
        """The row's outcomes on its first queries, if there are any."""
        key = row.file(self.folder), reading, row.queries
        if key not in self._outcomes:
            file = self.file(row)
            if file is None:
                return None
            whole = (*key[:2], None)
            if whole not in self._outcomes:
                self._outcomes[whole] = read_outcomes(file, reading)
            found = self._outcomes[whole]
            self._outcomes[key] = None if found is None else found.first(row.queries)
        found = self._outcomes[key]
        return found if found is not None and len(found) else None

    def forget(self, row: RunSpec) -> None:
        """Read a row anew when it is next asked for: it was run in the meantime."""
        path = row.file(self.folder)
        self._files.pop(path, None)
        self._outcomes = {key: found for key, found in self._outcomes.items() if key[0] != path}
