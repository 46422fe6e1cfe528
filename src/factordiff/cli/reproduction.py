"""What `factordiff reproduce` does once its arguments are read."""

from __future__ import annotations

import math
import re
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from factordiff.arc.dataset import Dataset
from factordiff.cli import inputs
from factordiff.devices import DTYPES, choose_device, chosen_dtype, device_name
from factordiff.errors import InvalidInput
from factordiff.evaluation.runs import RunContext, RunSettings
from factordiff.experiments.catalogue import (
    EXPERIMENTS,
    PAGE,
    README,
    chosen,
    document,
    other_weights,
    write_report,
)
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import BEYOND, BUDGET, TUNING, ExpertGroup, optional
from factordiff.experiments.plan import (
    ROUTER_SECONDS,
    START_SECONDS,
    TIMING_SECONDS,
    Speeds,
    plan_table,
    planned,
)
from factordiff.experiments.runner import Callbacks, Runner, check_only
from factordiff.experiments.tuning import fitted_as, next_trial
from factordiff.experts.registry import find_expert, shipped_experts
from factordiff.files import check_folder
from factordiff.locks import Lock
from factordiff.networks.named import NamedExpert, load_named
from factordiff.report.code_version import commit
from factordiff.report.document import Section, verdict_table
from factordiff.report.document import Table as ReportTable
from factordiff.report.outcomes import RecordFolder
from factordiff.report.records import SUFFIX
from factordiff.report.run_spec import RunSpec
from factordiff.report.tarball import TARBALL, pack, unpack
from factordiff.training.machines import join, leave

RECORDS = "records"


@dataclass(frozen=True)
class ReproduceRequest:
    """The command's arguments."""

    name: str
    limit: int | None
    device: str
    out: Path
    batch: int
    only: str
    part: str
    minutes: float
    seed: int
    steps: int
    particles: int
    dtype: str
    experts: list[str] | None
    compile: bool | None


def reproduce(request: ReproduceRequest, console: Console) -> None:
    """Run what was asked for, show it, and write the report after `all` and `report`."""
    experiments = chosen(request.name)
    folder, tarball = request.out / RECORDS, request.out / TARBALL
    if request.name == "pack":
        pack(folder, tarball)
        console.print(f"wrote {tarball} ({tarball.stat().st_size / 1e6:.2f} MB)", highlight=False)
        return
    if request.name == "plan":
        _unpacked(request.out)
        _plan(folder, console)
        return
    if experiments:
        runner = runner_for(request, experiments)
        alone = Lock.of_folder(request.out) if runner.context.machines.writes else nullcontext()
        try:
            with alone:
                _run(runner, experiments, console)
        finally:
            leave()
        if not runner.context.machines.writes:
            return
        if request.limit is not None:
            console.print(_subset(request.limit))
        if runner.stopped:
            again = "stopped after --minutes; the same command goes on where it was, and writes the report at the end"
            console.print(again, highlight=False)
            return
    if request.name in ("all", "report"):
        _unpacked(request.out)
        if not folder.is_dir():
            raise InvalidInput(f"out: {folder} holds no records; run an experiment first")
        made = document(folder)
        for path in write_report(made, request.out):
            if path.suffix != ".png":
                console.print(f"wrote {path}", highlight=False)
        if made.warning:
            console.print(Panel(escape(made.warning), style="bold yellow"))
        return
    for experiment in experiments:
        _show(console, experiment.report(RecordFolder(folder)))


def runner_for(request: ReproduceRequest, experiments: list[Experiment]) -> Runner:
    """Everything the run needs, checked before anything is computed."""
    if request.limit is not None and request.limit < 1:
        raise InvalidInput(f"limit: expected at least 1, got {request.limit}")
    for name, number in (("steps", request.steps), ("particles", request.particles)):
        if number < 1:
            raise InvalidInput(f"{name}: expected at least 1, got {number}")
    if not 0 <= request.minutes < math.inf:
        raise InvalidInput(f"minutes: expected a number of minutes, or 0 for no end, got {request.minutes:g}")
    if request.batch < 0:
        raise InvalidInput(f"batch: expected at least 1 (0 chooses), got {request.batch}")
    rows = [row for experiment in experiments for row in experiment.rows()]
    if request.only:
        check_only(request.only, rows)
    folders = inputs.named_folders(request.experts or ())
    check_folder("--out", request.out / RECORDS)
    check_folder("--out", request.out, (README, PAGE), inputs.of_experts(folders.values()))
    device = choose_device(request.device)
    gpu = device.type == "cuda"
    dtype = chosen_dtype(request.dtype, device)
    # The experts are compiled once for all rows of a run.
    compiled = gpu and request.limit is None if request.compile is None else request.compile
    settings = RunSettings(
        steps=request.steps,
        particles=request.particles,
        seed=request.seed,
        batch_size=request.batch or (6_000 if compiled else 1200 if gpu else 48),
        dtype=dtype,
        compiled=compiled,
    )
    deadline = time.monotonic() + 60 * request.minutes if request.minutes else None
    dataset = Dataset.load(device)
    machines = join(device)
    if machines.writes:
        _unpacked(request.out)
    machines.from_first(None)  # the others wait for it
    context = RunContext(
        request.out / RECORDS,
        device_name(device),
        commit(),
        machines,
        _part(request.part),
        deadline,
        answers=False,
    )

    @cache
    def known(name: str) -> NamedExpert:
        return load_named(folders.get(name, name), device, DTYPES[dtype])

    runner = Runner(
        known,
        cache(dataset.evaluation),
        dataset.artefact.sha256,
        context,
        settings,
        request.limit,
        request.only,
        available=lambda name: not optional(name) or name in folders or name in shipped_experts(),
    )
    for name in sorted({expert for row in runner.planned(rows) for expert in row.experts}):
        find_expert(folders.get(name, name))  # missing weights are said at once, not after an hour
    return runner


def _run(runner: Runner, experiments: list[Experiment], console: Console) -> None:
    world = runner.context.machines.world
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} % of {task.fields[passes]} row-passes"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    rows = runner.planned(row for experiment in experiments for row in experiment.rows())
    left = sum(_passes_left(runner, row) for row in rows)
    searches = [trial for experiment in experiments for trial in experiment.trials()]
    left += sum(_trial_passes(runner, *trial) for trial in searches)
    quiet = not runner.context.machines.writes
    with Progress(*columns, console=console, disable=quiet, speed_estimate_period=300) as progress:
        bar: TaskID = progress.add_task("starting", total=max(left, 1), passes=f"{left / 1e6:.1f} M")
        runner.callbacks = Callbacks(
            lambda name, queries: progress.update(bar, description=f"{name} ({queries:,})"),
            lambda queries, passes: progress.advance(bar, passes * world),
        )
        for experiment in experiments:
            experiment.run(runner)


def _passes_left(runner: Runner, row: RunSpec) -> int:
    listed = len(runner.queries(row.split))
    file = runner.archive.file(row)
    wanted = listed if row.queries is None else min(row.queries, listed)
    done = 0 if file is None else sum(query < wanted for query in file.done)
    return (wanted - done) * runner.settings.passes(row)


def _trial_passes(runner: Runner, group: ExpertGroup, method: str) -> int:
    """What a search may still cost, and the row that it leads to."""
    row = fitted_as(group, method, {}, TUNING, "validation")
    queries = min(runner.size(TUNING), len(runner.queries("validation")))
    if not runner.planned([row]) or next_trial(runner.archive, group, method, queries) is None:
        return 0
    after = min(runner.size(BEYOND), len(runner.queries("test")))
    return (BUDGET * queries + after) * runner.settings.passes(row)


def _plan(folder: Path, console: Console) -> None:
    """Every row of a full run, what is left of it, and how long that takes where the records were made."""
    archive = RecordFolder(folder)
    files = [archive.read(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    # Records of other weights say how long rows take, and are no part of a run with those of today.
    useful = RecordFolder(folder / "of other weights") if other_weights(archive) else archive
    rows = planned(EXPERIMENTS.values(), useful)
    table, minutes = plan_table(rows, Speeds(files))
    console.print(_rich(table))
    devices = sorted({device for file in files for device in file.devices})
    queries = sum(one.left for one in rows)
    console.print(
        f"{queries:,} queries are left"
        + (f", about {minutes:.0f} minutes on {', '.join(devices)}" if devices else "")
        + f"; besides {START_SECONDS:.0f} s for each call, {ROUTER_SECONDS:.0f} s for each router, "
        f"{TIMING_SECONDS:.0f} s for Table 7, and up to half of a search again past the end of what was tried",
        highlight=False,
    )


def _unpacked(out: Path) -> None:
    """Records that were packed, and not unpacked yet, are put back."""
    if (out / TARBALL).exists() and not (out / RECORDS).exists():
        unpack(out / TARBALL, out / RECORDS)


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    part, parts = (0, 0) if found is None else (int(found[1]), int(found[2]))
    if not 1 <= part <= parts:
        raise InvalidInput(f"part: expected K/N with K from 1 to N, such as 2/4, got {text!r}")
    return part - 1, parts


def _subset(limit: int) -> Panel:
    text = (
        f"A SUBSET: only the first {limit:,} queries of each list. These are not the results of a full run."
    )
    return Panel(text, style="bold yellow")


def _show(console: Console, section: Section) -> None:
    console.print(f"\n[bold]{escape(section.title)}[/]")
    for paragraph in section.paragraphs:
        console.print(paragraph, markup=False, highlight=False)
    for table in section.tables:
        console.print(_rich(table))
    if section.verdicts:
        console.print(_rich(verdict_table(section.verdicts)))


def _rich(table: ReportTable) -> Table:
    shown = Table(title=escape(table.caption) or None, title_justify="left")
    for heading in table.headings:
        shown.add_column(escape(heading), overflow="fold")  # a name that is cut is nobody's
    for row in table.rows:
        if row is None:
            shown.add_section()
        else:
            shown.add_row(*(escape(cell.replace("**", "")) for cell in row))
    return shown
