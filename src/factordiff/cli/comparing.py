"""What `factordiff compare` does once its arguments are read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from factordiff.cli import inputs
from factordiff.devices import choose_device
from factordiff.errors import DataError, InvalidInput, Unavailable
from factordiff.files import check_folder, read_regular, write_whole
from factordiff.report.document import Table as Made
from factordiff.worlds.catalogue import compare_world, world
from factordiff.worlds.chart import bars, shares
from factordiff.worlds.methods import ALONE, BOUND
from factordiff.worlds.world import World

TEXTS, TABLE, PICTURE = ("table.md", "table.tex"), "table.json", "table.png"
SHARES = "shares.png"


@dataclass(frozen=True)
class CompareRequest:
    """The command's arguments."""

    name: str
    settings: dict[str, Any]
    methods: str
    limit: int | None
    validation: int | None
    budget: int
    against: str
    split: str
    reveal: str
    batch: int
    seed: int
    device: str
    out: Path


def chosen_world(name: str, settings: dict[str, Any]) -> World:
    """The world; settings that it does not take are refused."""
    try:
        return world(name, **settings)
    except TypeError as error:
        options = {"folders": "--expert", "sequences": "--sequences"}
        given = ", ".join(options[key] for key in settings)
        raise InvalidInput(f"{given}: the world {name!r} does not take it") from error


def compare_and_show(request: CompareRequest, console: Console) -> None:
    """Run with a progress bar, print the table, and write it, with a picture, beside the records."""
    one = chosen_world(request.name, request.settings)
    folder = request.out / one.name / request.split
    read = inputs.of_experts(request.settings.get("folders", {}).values())
    read += inputs.of_data(request.settings.get("sequences"))
    check_folder("--out", folder, (*TEXTS, TABLE, PICTURE), read)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        waiting = progress.add_task(f"{one.name}: experts and queries", total=None)
        tasks: dict[str, Any] = {}

        def on_progress(row: str, done: int, total: int) -> None:
            progress.update(waiting, visible=False)
            if row not in tasks:
                tasks[row] = progress.add_task(row, total=total)
            progress.update(tasks[row], completed=done, total=total)

        table = compare_world(
            one,
            request.methods,
            split=request.split,
            limit=request.limit,
            validation=request.validation,
            budget=request.budget,
            device=choose_device(request.device),
            batch=request.batch,
            seed=request.seed,
            reveal=request.reveal,
            out=request.out,
            on_progress=on_progress,
        )
    console.print(shown(table.table()))
    if request.against:
        console.print(shown(table.against(request.against)))
    for name, text in zip(TEXTS, (table.markdown(), table.latex()), strict=True):
        write_whole(folder / name, f"{text}\n".encode())
    saved = {"caption": table.caption(), "about": table.about, "rows": table.figures()}
    write_whole(folder / TABLE, (json.dumps(saved, indent=1, allow_nan=False) + "\n").encode())
    write_whole(folder / PICTURE, bars(table))
    console.print(f"wrote {folder}/table.md, .tex, .json and .png, and the records", highlight=False)


def draw_shares(folder: Path, console: Console) -> None:
    """One picture of all worlds that were compared into a folder, as far as they have a way to the oracle."""
    found: dict[str, dict[str, float]] = {}
    tables = sorted(folder.glob(f"*/*/{TABLE}"))
    check_folder("--shares", folder, [SHARES], tables)
    for path in tables:  # `test` comes after `held` and takes its place
        try:
            rows = json.loads(read_regular(path))["rows"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}: not a table of `factordiff compare` ({error!r}); compare again"
            ) from None
        of_methods = {
            label: row["share"]
            for label, row in rows.items()
            if row["share"] is not None and row["family"] not in (ALONE, BOUND)
        }
        if of_methods:
            found[path.parent.parent.name] = of_methods
    if not found:
        raise Unavailable(
            f"shares: no table in {folder} has a way to an oracle; run `factordiff compare WORLD` first"
        )
    methods = list(dict.fromkeys(label for of_methods in found.values() for label in of_methods))
    write_whole(folder / SHARES, shares(found, methods))
    console.print(f"wrote {folder / SHARES}: {', '.join(found)}", highlight=False)


def shown(made: Made) -> Table:
    """A table for a terminal."""
    rich = Table(title=made.caption.replace("`", ""), title_justify="left", show_edge=False, pad_edge=False)
    for place, heading in enumerate(made.headings):
        rich.add_column(heading, justify="left" if place < 2 else "right", no_wrap=place >= 2)
    for row in made.rows:
        if row is None:
            rich.add_section()
        else:
            rich.add_row(*(cell.replace("[", "\\[") for cell in row))
    return rich
