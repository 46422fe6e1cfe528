"""What `factordiff eval` does once its arguments are read."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import CELLS
from factordiff.errors import InvalidInput
from factordiff.evaluation.benchmark import Record, evaluate
from factordiff.evaluation.methods import Options, method
from factordiff.evaluation.statistics import share
from factordiff.experts.store import expert_folder, load_expert, read_config
from factordiff.sampling.reveal import ByConfidence
from factordiff.training.machines import choose_device


@dataclass(frozen=True)
class Request:
    """Everything that determines the records."""

    experts: list[str]
    method: str
    split: str
    limit: int | None
    question: str
    temperatures: list[float] | None
    steps: int
    cycles: tuple[int, ...] | None
    batch: int
    seed: int
    device: str
    dtype: str


def measure(request: Request, console: Console, out: Path | None) -> list[Record]:
    """Run the evaluation with a progress bar; write the records if asked to."""
    device = choose_device(request.device)
    if not request.experts:
        raise InvalidInput("experts: expected at least one name or folder")
    cuda = device.type == "cuda"
    kinds = {
        "auto": torch.bfloat16 if cuda else torch.float32,
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
    }
    if request.dtype not in kinds:
        raise InvalidInput(f"dtype: expected auto, float32 or bfloat16, got {request.dtype!r}")
    experts = [load_expert(name, device, kinds[request.dtype]) for name in request.experts]
    if request.cycles is not None:
        if len(request.cycles) != 2:
            raise InvalidInput(f"cycles: expected two numbers H,L, got {request.cycles}")
        experts = [expert.with_cycles(*request.cycles) for expert in experts]
    objectives = [
        str(read_config(expert_folder(name))["about"].get("objective", "full")) for name in request.experts
    ]
    name = request.method or ("single" if len(experts) == 1 else "routing")
    how = method(name, objectives, Options(temperatures=request.temperatures))
    queries = Dataset.load(device).evaluation(request.split, request.limit)  # type: ignore[arg-type]
    batch = request.batch or (1200 if cuda else 24)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    begun = time.perf_counter()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"{name} on {request.split}", total=len(queries))
        records = list(
            evaluate(
                how,
                experts,
                queries,
                question=request.question,  # type: ignore[arg-type]
                reveal=ByConfidence(request.steps),
                batch=batch,
                seed=request.seed,
                on_batch=lambda done, _: progress.advance(bar, done),
            )
        )
    if out is not None:
        header = {
            **asdict(request),
            "seconds": round(time.perf_counter() - begun, 2),
            "device_name": str(device),
        }
        lines = [json.dumps(header), *(json.dumps(asdict(record)) for record in records)]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("\n".join(lines) + "\n")
    return records


def show(console: Console, request: Request, records: list[Record], per_task: bool) -> None:
    """Print accuracy with its interval, pixel accuracy and passes."""
    exact = np.array([record.exact for record in records])
    tasks = np.array([record.task for record in records])
    pixel = 1 - sum(len(record.wrong) for record in records) / (CELLS * len(records))
    nominal = np.mean([record.nominal for record in records])
    executed = np.mean([record.executed for record in records])
    subset = "" if request.limit is None else f" (the first {len(records)} queries only)"
    table = Table(title=f"{'+'.join(request.experts)}, {request.split}{subset}", title_justify="left")
    for heading in ("method", "queries", "exact [95 %]", "pixel", "passes/grid nominal", "executed"):
        table.add_column(heading, justify="right")
    name = request.method or ("single" if len(request.experts) == 1 else "routing")
    table.add_row(
        name if request.question == "full" else f"{name}, {request.question} question",
        str(len(records)),
        share(exact, tasks).percent(2),
        f"{100 * pixel:.2f} %",
        f"{nominal:.1f}",
        f"{executed:.1f}",
    )
    console.print(table)
    if per_task:
        worst = Table("task", "exact", "queries")
        by_task = {task: exact[tasks == task] for task in np.unique(tasks)}
        for task, right in sorted(by_task.items(), key=lambda pair: pair[1].mean()):
            worst.add_row(str(task), f"{100 * right.mean():.1f} %", str(len(right)))
        console.print(worst)
