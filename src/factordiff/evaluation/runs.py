"""A row of a table: experts, a method and how it is set, on the first queries of a list; run into its own file.

Tables share rows: a row is run once, whichever experiment asks for it, and asking for more queries continues it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import SIDE
from factordiff.composition.factor_names import factors_named
from factordiff.composition.method import Method, spec
from factordiff.composition.single import Single
from factordiff.engine.auto import AutoEngine
from factordiff.engine.engine import Engine
from factordiff.evaluation.benchmark import evaluate_batch
from factordiff.experts.expert import Expert
from factordiff.locks import Lock
from factordiff.report.records import SUFFIX, Batch, append, open_records
from factordiff.report.run_spec import RunSpec
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.rules import reveal_rule
from factordiff.training.machines import Machines

OWN = ("temperatures", "beta", "weights", "resampling")
OF_ALL_ROWS = ("softness", "particles", "runs")  # options of methods that the settings say
PARTICLE_METHODS = ("fkc", "rne")
SPELLED = {"block": "block:2x2", "near2": "near:2"}  # names of factors as they stand in the names of files


@dataclass(frozen=True)
class RunSettings:
    """How rows are run: part of every file's header."""

    steps: int = 128
    particles: int = 8
    runs: int = 3  # votes per expert
    softness: float = 0.1
    seed: int = 0
    batch_size: int = 1200  # queries in a batch; half as many for methods with several runs of each
    dtype: str = "float32"
    compiled: bool = False
    cycles: tuple[int, int] | None = None  # refinement in place of the trained
    reveal: str = ""  # a rule by name in place of the paper's order in `steps` steps

    def batch(self, row: RunSpec) -> int:
        """Queries in a batch, the same on every machine; particles mostly agree, and equal states are asked once."""
        return max(1, self.batch_size // 2) if self.rows_of_a_query(row) > 1 else self.batch_size

    def engine(self, row: RunSpec, experts: Sequence[Expert], device: torch.device, queries: int) -> Engine:
        """How the passes of a batch are put together."""
        each = self.rows_of_a_query(row)
        return AutoEngine(self.compiled).chosen(experts, device, each * queries, each)

    def passes(self, row: RunSpec, cells: int = SIDE * SIDE) -> int:
        """Nominal row-passes that one query costs."""
        experts = len(row.experts)
        return experts * self.rows_of_a_query(row) * min(self.steps, cells)

    def rows_of_a_query(self, row: RunSpec) -> int:
        """How many states of one query are decoded side by side."""
        particles = dict.fromkeys(PARTICLE_METHODS, self.particles)
        rivals = {"hex": dict(row.others).get("orders", 5), "tie": len(row.experts)}
        return {"vote": self.runs, **particles, **rivals}.get(row.method, 1)


@dataclass(frozen=True)
class RunContext:
    """Where this runs: named in every batch of records, and no part of what determines them."""

    folder: Path
    device: str = "cpu"
    commit: str = "unknown"
    machines: Machines = field(default_factory=Machines)
    part: tuple[int, int] = (0, 1)  # this call takes the batches b with b % n == k
    deadline: float | None = None  # on time.monotonic(): no batch begins after it
    answers: bool = True  # whether records tell answers apart: cards compare runs, a report counts


def header(
    row: RunSpec, settings: RunSettings, weights: dict[str, str], data: str, listed: int
) -> dict[str, Any]:
    """What a file of this row's records must say about itself."""
    determined = {key: value for key, value in asdict(row).items() if key not in ("queries", "experts")}
    # What came later is named only where it is used, so that older records still say the same of themselves.
    determined = {key: value for key, value in determined.items() if key != "others" or value}
    run = {key: value for key, value in asdict(settings).items() if key != "reveal" or value}
    return {
        "row": row.name,
        "data": data,
        "weights": {name: weights[name] for name in row.experts},
        "listed": listed,
        "method": _as_json(determined),
        "settings": _as_json(run),
    }


def _as_json(values: dict[str, Any]) -> dict[str, Any]:
    # As a file gives it back: tuples in tuples are lists in lists.
    return dict(json.loads(json.dumps(values)))


def build_method(
    row: RunSpec, settings: RunSettings, objectives: Sequence[str], queries: EvaluationSet, index: Tensor
) -> Method:
    """The row's method for a batch; factors may depend on the queries in it."""
    if row.method == "floor":  # every expert is asked and the first is believed: what any composition costs
        return Method("floor", Single(0))
    declared = spec(row.method)
    takes = {option.name for option in declared.options}
    given: dict[str, Any] = {name: getattr(settings, name) for name in OF_ALL_ROWS if name in takes}
    # The settings are of all rows; what a row itself says must be an option of its method.
    given |= {name: value for name in OWN if (value := getattr(row, name)) is not None} | dict(row.others)
    queried = queries.pool[queries.queries[index], 0].to(torch.int64)
    factors = SPELLED.get(row.factors, row.factors)
    labels = factors_named(factors, SIDE * SIDE, (SIDE, SIDE), queried, declared.overlapping)
    return declared.method(declared.check(given, row.experts), objectives, labels)


def run_row(
    row: RunSpec,
    experts: Sequence[Expert],
    objectives: Sequence[str],
    queries: EvaluationSet,
    about: dict[str, Any],
    settings: RunSettings,
    context: RunContext,
    on_batch: Callable[[int], None] | None = None,
    path: Path | None = None,
) -> None:
    """Answer the row's queries that have no record yet, and append the records to its file (or to `path`).

    The list is cut into fixed batches, and whole batches are dealt out to the machines; each writes its own file,
    and the first gathers them. So records do not depend on how many machines there were.
    """
    path = path or row.file(context.folder)
    machines = context.machines
    device = queries.queries.device
    # What makes no sense is refused before a file is begun.
    reveal = reveal_rule(settings.reveal) if settings.reveal else ByConfidence(settings.steps)
    build_method(row, settings, objectives, queries, torch.zeros(1, dtype=torch.int64, device=device))
    with Lock.of_file(path) if machines.writes else nullcontext():
        done = machines.from_first(gather(path, about) if machines.writes else set())
        mine = path if machines.world == 1 else path.with_name(f"{_stem(path)}.rank{machines.rank}{SUFFIX}")
        for number, missing in enumerate(_missing(row, queries, settings, context, done)):
            if number % machines.world != machines.rank:
                continue
            if context.deadline is not None and time.monotonic() > context.deadline:
                break
            index = torch.tensor(missing, device=device)
            how = build_method(row, settings, objectives, queries, index)
            records, seconds = evaluate_batch(
                how,
                experts,
                queries,
                index,
                question=row.question,
                reveal=reveal,
                seed=settings.seed,
                grids=row.split in ("official", "unseen"),
                engine=settings.engine(row, experts, device, len(missing)),
            )
            if not context.answers:
                records = [replace(record, answer="") for record in records]
            if not mine.exists():
                open_records(mine, about)
            append(mine, Batch(tuple(records), seconds, context.device, context.commit))
            if on_batch is not None:
                on_batch(len(records))
        if machines.world > 1:
            torch.distributed.barrier()
            if machines.writes:
                gather(path, about)
            torch.distributed.barrier()  # what is decided from the records is decided alike on every machine


def _stem(path: Path) -> str:
    return path.name.removesuffix(SUFFIX)


def gather(path: Path, about: dict[str, Any]) -> set[int]:
    """Move what single machines wrote into the row's file; returns the queries that have a record."""
    file = open_records(path, about)
    done = file.done
    for part in sorted(path.parent.glob(f"{_stem(path)}.rank*{SUFFIX}")):
        for batch in open_records(part, about).batches:
            if not done.issuperset(record.query for record in batch.records):
                append(path, batch)
                done |= {record.query for record in batch.records}
        part.unlink()
    return done


def _missing(
    row: RunSpec, queries: EvaluationSet, settings: RunSettings, context: RunContext, done: set[int]
) -> list[list[int]]:
    """The batches that still have work, each as the queries in it without a record."""
    count = len(queries) if row.queries is None else min(row.queries, len(queries))
    batch, (part, parts) = settings.batch(row), context.part
    cut = [range(first, min(first + batch, count)) for first in range(0, count, batch)]
    left = [[query for query in queries_ if query not in done] for queries_ in cut[part::parts]]
    return [batch_ for batch_ in left if batch_]
