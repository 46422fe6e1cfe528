"""What every experiment needs: experts by name, queries by split, settings, a folder, and somebody who watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.errors import InvalidInput
from factordiff.evaluation.runs import RunContext, RunSettings, header, run_row
from factordiff.experts.registry import CONFIG
from factordiff.networks.named import NamedExpert
from factordiff.networks.store import weight_hash
from factordiff.report.findings import finding_path, has_finding, write_finding
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec

ROUTERS = "routers"  # the folder of fitted routers, among the records


@dataclass(frozen=True)
class Callbacks:
    """Who is told how a run goes: each row as it begins, and each batch with its nominal passes."""

    row: Callable[[str, int], None] = lambda name, queries: None
    batch: Callable[[int, int], None] = lambda queries, passes: None


@dataclass
class Runner:
    """Runs rows and findings. Experts and queries are arguments: shipped ones and ARC by default, others in tests."""

    experts: Callable[[str], NamedExpert]
    queries: Callable[[str], EvaluationSet]
    data: str
    context: RunContext
    settings: RunSettings = field(default_factory=RunSettings)
    limit: int | None = None
    only: str = ""
    callbacks: Callbacks = field(default_factory=Callbacks)
    available: Callable[[str], bool] = lambda name: True  # experts that a report is whole without
    findings: bool = True  # whether this call makes what is no row: maps, curves, sizes
    stopped: bool = False  # whether the deadline left something undone

    @property
    def archive(self) -> RecordFolder:
        """The records so far."""
        return RecordFolder(self.context.folder)

    def planned(self, rows: Iterable[RunSpec]) -> list[RunSpec]:
        """The rows of a plan that this call runs, each once, cut to the limit."""
        merged: dict[str, RunSpec] = {}
        for row in rows:
            if self.limit is not None:
                row = replace(
                    row, queries=self.limit if row.queries is None else min(row.queries, self.limit)
                )
            if (self.only and not _asked_for(row, self.only)) or not all(map(self.available, row.experts)):
                continue
            known = merged.get(row.name)
            if known is None or (known.queries is not None and (row.queries or 10**9) > known.queries):
                merged[row.name] = row
        return list(merged.values())

    def run(self, rows: Iterable[RunSpec], context: RunContext | None = None) -> None:
        """Run the rows that are not done."""
        where = context or self.context
        for row in self.planned(rows):
            queries = self.queries(row.split)
            if self.late(where):
                return
            routed = self.with_router(row)
            if routed is None:
                continue
            known = [self.experts(name) for name in row.experts]
            weights = {name: one.sha256 for name, one in zip(row.experts, known, strict=True)}
            about = header(row, self.settings, weights, self.data, len(queries))
            if routed is not row:
                about["router"] = weight_hash(router_folder(self.context.folder, row))
            cost = self.settings.passes(row)
            self.callbacks.row(row.name, min(len(queries), row.queries or len(queries)))
            run_row(
                routed,
                [one.expert for one in known],
                [one.objective for one in known],
                queries,
                about,
                self.settings,
                where,
                lambda done, cost=cost: self.callbacks.batch(done, done * cost),  # type: ignore[misc]
            )
            self.late(where)

    def late(self, where: RunContext | None = None) -> bool:
        """Whether the deadline has passed, on every machine alike; from then on the run counts as stopped."""
        context = where or self.context
        passed = context.deadline is not None and time.monotonic() > context.deadline
        passed = context.machines.agree(passed, self.queries("validation").queries.device)
        self.stopped |= passed
        return passed

    def with_router(self, row: RunSpec) -> RunSpec | None:
        """The row as it is run: records name a router, a run needs its folder; None before it is fitted."""
        if "router" not in dict(row.others):
            return row
        folder = router_folder(self.context.folder, row)
        if not (folder / CONFIG).exists():
            return None
        return replace(row, others=tuple((n, str(folder) if n == "router" else v) for n, v in row.others))

    def find(
        self, name: str, experts: Sequence[str], about: Mapping[str, Any], look: Callable[[], Any]
    ) -> None:
        """Make a finding unless it is there; only the first machine does.

        One that looked at other queries, after an interruption or with a limit, is made anew, but never from fewer.
        """
        if not self.findings or self.late() or not self.context.machines.writes:
            return
        known = {expert: self.experts(expert).sha256 for expert in experts}
        head = {"data": self.data, "weights": known, "steps": self.settings.steps}
        folder = self.context.folder
        if not has_finding(folder, name, head, about) and not (
            self.limit is not None and finding_path(folder, name).exists()
        ):
            write_finding(folder, name, {**head, **about}, look())

    def asks_for(self, experts: Sequence[str], method: str) -> bool:
        """Whether `only` may select rows of these experts and this method; it does not when it names others alone."""
        stem = f"{'+'.join(experts)}.{method}"
        return not self.only or any(part.count(".") != 1 or part == stem for part in self.only.split(","))

    def size(self, queries: int) -> int:
        """How many queries a finding looks at."""
        return queries if self.limit is None else min(queries, self.limit)


def router_folder(records: Path, row: RunSpec) -> Path:
    """The folder of the router that a row names, beside the records, so that they travel together.

    Its last part is that name, so that the row is called the same.
    """
    return records / ROUTERS / "+".join(row.experts) / str(dict(row.others)["router"])


def _asked_for(row: RunSpec, only: str) -> bool:
    """Whether a row is named: by its whole name, or by parts of it that follow each other, such as its method."""
    return any(
        part == row.name if part.count(".") > 1 else f".{part}." in f".{row.name}."
        for part in only.split(",")
        if part
    )


def check_only(only: str, rows: Sequence[RunSpec]) -> None:
    """Refuse a selection that selects nothing."""
    unknown = [part for part in only.split(",") if part and not any(_asked_for(row, part) for row in rows)]
    if unknown:
        methods = sorted({row.method for row in rows})
        raise InvalidInput(
            f"only: no row of this experiment is called {', '.join(unknown)}; expected a method "
            f"({', '.join(methods)}), experts such as {'+'.join(rows[0].experts)}, or a row's whole name"
        )
