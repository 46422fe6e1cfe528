"""What `factordiff fit` and `factordiff diagnose` do once their arguments are read."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from factordiff.arc.dataset import Dataset
from factordiff.arc.fitting_data import validation_data
from factordiff.arc.grid import check_colors
from factordiff.cli import inputs
from factordiff.cli.progress import stage_bars
from factordiff.composition.router import Router
from factordiff.composition.router_store import CARD, save_router
from factordiff.devices import choose_device
from factordiff.errors import InvalidInput
from factordiff.experts.registry import CONFIG
from factordiff.files import check_folder, check_outputs, write_whole
from factordiff.fitting.data import FittingData, read_data
from factordiff.fitting.diagnosis import Diagnosis
from factordiff.fitting.fit_folder import IDENTITY
from factordiff.fitting.heads import chosen_heads
from factordiff.fitting.report import FitReport, Trial
from factordiff.fitting.search import fittable
from factordiff.locks import Lock
from factordiff.networks.store import MODEL
from factordiff.report.diagnosis_chart import picture as drawn
from factordiff.sampling.rules import reveal_rule
from factordiff.team.team import Team, compose

WORKPLACE, TEAM, REPORT = "fitting", "team.json", "report.json"
BESIDE_AT = 72  # columns that a diagnosis takes beside what each way was set to


@dataclass(frozen=True)
class FitRequest:
    """The arguments of `fit`."""

    experts: list[str]
    method: str
    out: Path
    data: Path | None
    layout: str
    items: int
    held: int
    rounds: int
    head: str
    reveal: str
    device: str
    options: dict[str, Any]
    command: str  # for a router's card


@dataclass(frozen=True)
class DiagnoseRequest:
    """The arguments of `diagnose`."""

    experts: list[str]
    data: Path | None
    layout: str
    items: int
    picture: Path | None
    out: Path | None
    seed: int
    device: str


def fit(request: FitRequest, console: Console) -> None:
    """Fit, write the folder, and print what was tried."""
    what = fittable(request.method).what
    read = [*inputs.of_experts(request.experts), *inputs.of_data(request.data)]
    check_folder("--out", request.out, (TEAM, REPORT, CONFIG, MODEL, CARD), read)
    place = request.out / WORKPLACE
    for name in (TEAM, CONFIG):  # an interrupted fit may have written some of its result, and goes on
        if (request.out / name).exists() and not (place / IDENTITY).exists():
            raise InvalidInput(f"out: {request.out} already holds a {name}; choose another folder")
    device = choose_device(request.device)
    team = compose(request.experts, device=device)
    if request.reveal:
        team = replace(team, reveal=reveal_rule(request.reveal))
    data = _data(request.data, request.layout)
    if data is None:
        check_colors(team.names, team.experts[0].vocabulary)
        data = validation_data(Dataset.load(device), request.items, request.held, request.rounds)
    options = {**request.options, "heads": chosen_heads(request.head)}
    there = request.out.exists()
    try:
        with Lock.of_folder(request.out):
            with stage_bars(console) as tell:
                fitted = team.fit(data, what, folder=place, on_progress=tell, **options)
            _written(fitted, request.out, request.command)
            shutil.rmtree(place)
    finally:
        if not there:  # what is refused leaves no empty folder behind
            with suppress(OSError):
                request.out.rmdir()
    assert fitted.report is not None
    file = request.out / TEAM
    use = f"factordiff solve TASK --team {file}" if request.data is None else f'compose("{file}")'
    show_report(console, fitted.report, request.out, use)


def _written(team: Team, folder: Path, command: str) -> None:
    """Write router, team and report."""
    router = team.options.get("router")
    if isinstance(router, Router):
        router = replace(router, about={"command": command, **router.about})
        team = replace(team, options={**team.options, "router": save_router(router, folder)})
    assert team.report is not None
    write_whole(folder / REPORT, (json.dumps(asdict(team.report), indent=2) + "\n").encode())
    team.save(folder / TEAM)


def show_report(console: Console, report: FitReport, folder: Path, use: str) -> None:
    """Print every trial, the chosen one marked, and how the team is used."""
    table = Table(title=f"{report.method}: {report.what}, {report.held} held-out items", title_justify="left")
    for heading in ("", "setting"):
        table.add_column(heading)
    for heading in ("exact", "cells", "held-out loss"):
        table.add_column(heading, justify="right")
    for number, trial in enumerate(report.trials):
        table.add_row("*" if number == report.chosen else "", *_cells(trial))
    console.print(table)
    for name, value in report.notes.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.5f}"
        console.print(f"{name}: {shown}", highlight=False)
    if report.edge:
        console.print(
            "the chosen numbers are the last that were tried: a larger --budget may find better ones"
        )
    router = f", router in {folder}" if (folder / MODEL).exists() else ""
    console.print(
        f"{report.seconds:.0f} s; team in {folder / TEAM}{router} ({use})",
        highlight=False,
        soft_wrap=True,
    )


def _cells(trial: Trial) -> tuple[str, str, str, str]:
    score, loss = trial.score, trial.loss
    return (
        trial.said,
        "" if score is None else f"{100 * score.exact:.1f} %",
        "" if score is None else f"{100 * score.cells:.2f} %",
        "" if loss is None else f"{loss:.5f}",
    )


def diagnose(request: DiagnoseRequest, console: Console) -> None:
    """Diagnose, print the table and the advice, and draw."""
    wanted = {"--picture": request.picture, "--out": request.out}
    files = {option: file for option, file in wanted.items() if file is not None}
    check_outputs(files, [*inputs.of_experts(request.experts), *inputs.of_data(request.data)])
    device = choose_device(request.device)
    team = compose(request.experts, device=device)
    data = _data(request.data, request.layout)
    if data is None:
        if request.items < 2:
            raise InvalidInput(f"items: expected at least 2, got {request.items}")
        check_colors(team.names, team.experts[0].vocabulary)
        data = validation_data(Dataset.load(device), request.items, 0)
    with stage_bars(console) as tell:
        found = team.diagnose(data, seed=request.seed, on_progress=tell)
    show_diagnosis(console, found)
    if request.out is not None:
        write_whole(request.out, (json.dumps(spelled(found), indent=2) + "\n").encode())
    if request.picture is not None:
        write_whole(request.picture, drawn(found))


def show_diagnosis(console: Console, found: Diagnosis) -> None:
    """Print what each way gets right, where experts are wrongly sure, and the advice."""
    title = f"{' + '.join(found.names)}: hidden cells right, {found.items} items"
    table = Table(title=title, title_justify="left")
    table.add_column(
        "way", min_width=11, overflow="fold"
    )  # experts are told apart by the ends of their names
    # In two lines, so that a window of 80 columns has room for what each way was set to.
    for heading in ("all", "whole\nrows", *(f"{100 * rate:.0f} %\nhidden" for rate in found.rates)):
        table.add_column(heading, justify="right")
    table.add_column("at", max_width=max(8, console.width - BESIDE_AT), overflow="fold")
    for one in found.findings:
        shares = (one.cells, one.rows, *one.by_rate)
        table.add_row(one.name, *(f"{100 * share:.2f}" for share in shares), one.setting)
    console.print(table)
    if len(found.names) > 2:
        console.print(
            "of more than two experts the best numbers and temperatures are searched for: there may be better ones",
            highlight=False,
            soft_wrap=True,
        )
    for name, cells in zip(found.names, found.wrongly_sure, strict=True):
        worst = int(cells.argmax())
        where = f"cell {worst}"
        if found.layout is not None:
            where = f"row {worst // found.layout[1]}, column {worst % found.layout[1]}"
        most = f", most at {where} ({100 * float(cells.max()):.1f} %)" if cells.any() else ""
        console.print(
            f"{name} is wrong and sure (margin above 0.9) at {100 * float(cells.mean()):.2f} % of hidden cells{most}",
            highlight=False,
            soft_wrap=True,
        )
    gain, error = 100 * found.gain, 100 * found.error
    console.print(
        f"learned less the best without a router: {gain:+.2f} points (standard error {error:.2f})",
        highlight=False,
    )
    console.print(found.advice, highlight=False, soft_wrap=True)


def spelled(found: Diagnosis) -> dict[str, Any]:
    """A diagnosis as JSON takes it."""
    return {
        "experts": list(found.names),
        "items": found.items,
        "rates": list(found.rates),
        "findings": [asdict(one) for one in found.findings],
        "wrongly_sure": found.wrongly_sure.tolist(),
        "gain": found.gain,
        "error": found.error,
        "advice": found.advice,
    }


def _data(file: Path | None, layout: str) -> FittingData | None:
    if file is None:
        return None
    shape = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", layout) if layout else None
    if layout and shape is None:
        raise InvalidInput(f"layout: expected height x width, as 10x10, got {layout!r}")
    return read_data(file, None if shape is None else (int(shape[1]), int(shape[2])))
