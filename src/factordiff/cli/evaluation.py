"""What `factordiff eval` does once its arguments are read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import check_colors
from factordiff.cli import inputs
from factordiff.composition.method import spec
from factordiff.composition.router_store import check_experts, load_router
from factordiff.devices import DTYPES, choose_device, chosen_dtype, device_name
from factordiff.engine.auto import AutoEngine
from factordiff.errors import FileError, InvalidInput
from factordiff.evaluation.runs import OF_ALL_ROWS, OWN, RunContext, RunSettings, header, run_row
from factordiff.experts.registry import distinct_names, find_expert
from factordiff.files import check_outputs
from factordiff.networks.named import load_named
from factordiff.networks.store import weight_hash
from factordiff.report.code_version import commit
from factordiff.report.outcomes import Outcomes, read_outcomes
from factordiff.report.record import QUESTIONS
from factordiff.report.records import SUFFIX, read_records
from factordiff.report.run_spec import RunSpec
from factordiff.team.router import shipped_for, takes_router

MOST_CYCLES = 100  # of either kind; they multiply


@dataclass(frozen=True)
class EvalRequest:
    """The command's arguments."""

    experts: list[str]
    method: str
    split: str
    limit: int | None
    question: str
    options: dict[str, Any]
    cycles: tuple[int, ...] | None
    batch: int
    seed: int
    device: str
    dtype: str
    compile: bool | None = None
    reveal: str = ""  # by default what suits the method
    rounds: int = 1
    data: Path | None = None
    out: Path | None = None
    per_task: bool = False

    def row(self) -> RunSpec:
        """What is measured."""
        if not self.experts:
            raise InvalidInput("experts: expected at least one name or folder")
        if self.question not in QUESTIONS:
            raise InvalidInput(f"question: expected one of {', '.join(QUESTIONS)}, got {self.question!r}")
        names = tuple(distinct_names([find_expert(name).name for name in self.experts]))
        method = self.method or ("single" if len(self.experts) == 1 else "routing")
        given = spec(method).check(self.options, names)
        own = {name: given.pop(name) for name in (*OWN, "factors") if name in given}
        own.setdefault("factors", spec(method).factors)
        others = tuple((name, value) for name, value in given.items() if name not in OF_ALL_ROWS)
        question: Any = self.question
        return RunSpec(names, method, self.split, **own, queries=self.limit, question=question, others=others)

    def settings(self, device: torch.device, listed: int) -> RunSettings:
        """How it is run there, on so many queries."""
        gpu = device.type == "cuda"
        dtype = chosen_dtype(self.dtype, device)
        if self.limit is not None and self.limit < 1:
            raise InvalidInput(f"limit: expected at least 1, got {self.limit}")
        if self.cycles is not None and len(self.cycles) != 2:
            raise InvalidInput(f"cycles: expected two numbers H,L, got {self.cycles}")
        if self.cycles is not None and max(self.cycles) > MOST_CYCLES:
            raise InvalidInput(f"cycles: expected at most {MOST_CYCLES} of each, got {max(self.cycles)}")
        if self.batch < 0:
            raise InvalidInput(f"batch: expected at least 1 (0 chooses), got {self.batch}")
        compiled = AutoEngine(self.compile).pays(device, min(listed, self.limit or listed))
        return RunSettings(
            seed=self.seed,
            batch_size=self.batch or (12_000 if compiled else 1200 if gpu else 24),
            dtype=dtype,
            compiled=compiled,
            cycles=self.cycles,
            reveal=self.reveal or spec(self.row().method).reveal,
            **{name: value for name, value in self.options.items() if name in OF_ALL_ROWS},
        )


def measure(request: EvalRequest, console: Console) -> tuple[Outcomes, float]:
    """Run the evaluation with a progress bar: what came of it, and the seconds of decoding.

    The records go to `out`, which continues where it was interrupted.
    """
    out = request.out
    if out is not None and not out.name.endswith(SUFFIX):
        raise InvalidInput(f"out: expected a name that ends in {SUFFIX}, got {out.name!r}")
    if out is not None:
        read = [*inputs.of_experts(request.experts), *inputs.of_options(request.options)]
        check_outputs({"--out": out}, [*read, *inputs.of_data(request.data)])
    device = choose_device(request.device)
    row = request.row()
    dataset = Dataset.load(device) if request.data is None else Dataset.load(device, request.data)
    queries = dataset.evaluation(request.split, rounds=request.rounds)  # type: ignore[arg-type]
    settings = request.settings(device, len(queries))
    loaded = [load_named(name, device, DTYPES[settings.dtype]) for name in request.experts]
    experts: list[Any] = [one.expert for one in loaded]
    check_colors(row.experts, experts[0].vocabulary)
    if settings.cycles is not None:
        experts = [expert.with_cycles(*settings.cycles) for expert in experts]
    weights = {name: one.sha256 for name, one in zip(row.experts, loaded, strict=True)}
    if takes_router(row.method) and "router" not in dict(row.others):
        shipped = shipped_for(row.method, tuple(weights.items()))
        row = replace(row, others=(*row.others, ("router", shipped)))
    about = header(row, settings, weights, dataset.artefact.sha256, len(queries))
    router = dict(row.others).get("router")
    if router is not None:
        check_experts(
            load_router(router), list(weights.items()), dict(row.others).get("other_experts") == "allow"
        )
        about["router"] = weight_hash(router)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _place(out, row) as path, Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(row.name, total=min(len(queries), row.queries or len(queries)))
        context = RunContext(path.parent, device_name(device), commit())
        run_row(
            row,
            experts,
            [one.objective for one in loaded],
            queries,
            about,
            settings,
            context,
            lambda n: progress.advance(bar, n),
            path,
        )
        file = read_records(path)
    found = read_outcomes(file)
    assert found is not None  # the list has at least one query
    return found, file.seconds


@contextmanager
def _place(out: Path | None, row: RunSpec) -> Iterator[Path]:
    """The file of the records: the one that was asked for, or one that is gone afterwards."""
    if out is not None:
        yield out
        return
    try:
        scratch = tempfile.TemporaryDirectory()
    except OSError as error:
        raise _no_room(error) from error
    with scratch as folder:
        try:
            yield row.file(Path(folder))
        except FileError as error:
            raise _no_room(error.__cause__ or error) from error


def _no_room(error: BaseException) -> FileError:
    why = getattr(error, "strerror", None) or error
    return FileError(
        f"out: records cannot be kept in a temporary folder for now ({why}); give --out FILE on a disk that has room"
    )


def show(console: Console, request: EvalRequest, found: Outcomes, seconds: float) -> None:
    """Print accuracy with its interval, pixel accuracy, passes and the time of decoding."""
    subset = "" if request.limit is None else f" (the first {len(found)} queries only)"
    table = Table(title=f"{'+'.join(request.experts)}, {request.split}{subset}", title_justify="left")
    headings = ("method", "queries", "exact [95 %]", "cut to shape", "pixel", "passes nominal", "executed")
    for heading in headings:
        table.add_column(heading, justify="right")
    name = request.row().method
    table.add_row(
        name if request.question == "full" else f"{name}, {request.question} question",
        str(len(found)),
        found.accuracy.percent(2),
        "" if found.cropped is None else f"{100 * found.cropped.mean():.2f} %",
        f"{100 * found.pixel():.2f} %",
        f"{found.nominal.mean():.1f}",
        f"{found.executed.mean():.1f}",
    )
    console.print(table)
    console.print(
        f"decoded in {seconds:.3g} s ({len(found) / seconds:.4g} a second), compilation apart",
        highlight=False,
    )
    if request.per_task:
        worst = Table("task", "exact", "queries")
        counts = found.per_task_counts()
        for task, right in sorted(found.per_task().items(), key=lambda pair: pair[1]):
            worst.add_row(task, f"{100 * right:.1f} %", str(counts[task]))
        console.print(worst)
