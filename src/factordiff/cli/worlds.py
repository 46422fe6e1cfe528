"""`factordiff worlds` and `factordiff compare`: every method and bound on a world, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from factordiff.cli.app import app

PLAIN_WIDTH = 240  # of tables that go into a file: nothing is cut


@app.command("worlds")
def worlds_command() -> None:
    """List the worlds: experts, data and a metric each, and what each is there to test.

    Example: factordiff worlds
    """
    from factordiff.errors import FactorDiffError
    from factordiff.worlds.catalogue import WORLDS, world

    console = _console()
    table = Table("world", "tests", "test queries", "figure", "needs", show_edge=False, pad_edge=False)
    for name in WORLDS:
        try:
            one = world(name)
        except FactorDiffError as error:  # an extra that is not installed
            table.add_row(name, "", "", "", str(error))
            continue
        size = f"{one.sizes['test']:,}" if one.sizes.get("test") else "yours"
        table.add_row(name, one.tests, size, one.metric.main.name, one.needs)
    console.print(table)


@app.command("compare")
def compare_command(
    name: Annotated[str, typer.Argument(help="A world; `factordiff worlds` lists them.", metavar="WORLD")],
    methods: Annotated[
        str,
        typer.Option(
            help="Rows, joined by commas: alone, a method such as mixture or routing[temperatures=1,0.25], "
            "fitted:mixture|product|routing (numbers chosen on validation), told, oracle, union, answer-fitted."
        ),
    ] = "",
    limit: Annotated[int | None, typer.Option(help="Only the first N queries.")] = None,
    validation: Annotated[int | None, typer.Option(help="Validation queries that numbers are fitted on.")] = None,
    split: Annotated[str, typer.Option(help="test or validation.")] = "test",
    reveal: Annotated[str, typer.Option(help="fast, exact, or a rule; by default the world's own.")] = "",
    expert: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER: use this folder for that expert.")
    ] = None,
    sequences: Annotated[
        Path | None, typer.Option(help="antibody: FASTA or AIRR TSV of your own in place of the documented ones.")
    ] = None,
    batch: Annotated[int, typer.Option(help="Queries at a time; 0: the world's own.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of methods that draw.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    out: Annotated[Path, typer.Option(help="Folder of records, table and picture.")] = Path("runs/compare"),
) -> None:
    """Compare methods and bounds on a world; interrupted runs continue, and finished rows are not run again.

    Example: factordiff compare toy-halves --out runs/first
    """
    from factordiff.cli.comparing import Request, compare_and_show

    settings: dict[str, Any] = {}
    if expert:
        settings["folders"] = dict(_folder(one) for one in expert)
    if sequences is not None:
        settings["sequences"] = sequences
    request = Request(name, settings, methods, limit, validation, split, reveal, batch, seed, device, out)
    compare_and_show(request, _console())


def _folder(text: str) -> tuple[str, str]:
    from factordiff.errors import InvalidInput

    name, equals, folder = text.partition("=")
    if not equals:
        raise InvalidInput(f"--expert: expected NAME=FOLDER, got {text!r}")
    return name, folder


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)
