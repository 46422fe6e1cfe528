"""`factordiff worlds` and `factordiff compare`: every method and bound on a world, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from factordiff.cli.app import app

PLAIN_WIDTH = 240  # of tables that go into a file: nothing is cut
ASKED = ("methods", "limit", "validation", "budget", "reveal", "batch", "seed")  # as `compare_world` takes it


@app.command("worlds")
def worlds_command(
    name: Annotated[str, typer.Argument(help="One world, with the commands that get what it needs.")] = "",
    shares: Annotated[
        Path | None, typer.Option(help="Draw all tables of this folder of `compare` as one picture.")
    ] = None,
) -> None:
    """List the worlds: experts, data and a metric each, and what each is there to test.

    Example: factordiff worlds
    """
    from factordiff.worlds.catalogue import WORLDS, world

    console = _console()
    if shares is not None:
        from factordiff.cli.comparing import draw_shares

        draw_shares(shares, console)
        return
    if name:
        _about(console, world(name))
        return
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("world", "tests", "queries", "figure"):
        table.add_column(heading, no_wrap=heading != "tests")
    listed = [world(name) for name in WORLDS]
    for one in listed:
        size = f"{one.sizes['test']:,}" if one.sizes["test"] else "none yet"
        table.add_row(one.name, one.tests, size, one.metric.main.name)
    console.print(table)
    for one in listed:
        if one.needs:
            console.print(f"{one.name} needs {one.needs}", highlight=False, markup=False)


def _about(console: Console, world: Any) -> None:
    lines = [
        f"{world.name}: {world.tests}",
        f"rows: {', '.join(world.methods)}",
        f"factors: {', '.join(world.factors)}",
        f"figures: {', '.join(measure.name for measure in world.metric.measures)} ({world.metric.mode})",
        f"queries: {', '.join(f'{size:,} {split}' for split, size in world.sizes.items())}",
        f"needs: {world.needs or 'nothing'}",
    ]
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)
    if world.recipe:
        console.print(world.recipe, highlight=False, markup=False, soft_wrap=True)


@app.command("compare")
def compare_command(
    name: Annotated[
        str,
        typer.Argument(
            help="A world that `factordiff worlds` lists, or module:Class: one of your own.", metavar="WORLD"
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            help="Rows, joined by commas: alone, a method such as mixture or routing\\[temperatures=1,0.25], "
            "fitted:mixture|product|routing|superdiff|evidence (numbers chosen on validation), fitted:learned or "
            "fitted:learned\\[kind=neighbourhood] (a router), told, oracle, union, answer-fitted."
        ),
    ] = "",
    limit: Annotated[int | None, typer.Option(help="Only the first N queries.")] = None,
    validation: Annotated[
        int | None, typer.Option(help="Validation queries that rows are fitted on.")
    ] = None,
    budget: Annotated[
        int, typer.Option(help="Settings that each fitted row may try on them; the same for all.")
    ] = 24,
    against: Annotated[
        str, typer.Option(help="Also print every figure's paired difference to this row.")
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            help="test; held: validation queries, rows fitted on the others; validation: rows that are not fitted."
        ),
    ] = "test",
    reveal: Annotated[str, typer.Option(help="fast, exact, or a rule; by default the world's own.")] = "",
    expert: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER: use this folder for that expert.")
    ] = None,
    sequences: Annotated[
        Path | None,
        typer.Option(help="antibody: FASTA or AIRR TSV of your own in place of the documented ones."),
    ] = None,
    puzzles: Annotated[
        Path | None,
        typer.Option(
            help="sudoku: puzzles of your own, one in a line: 81 digits, a dot where nothing stands."
        ),
    ] = None,
    batch: Annotated[int, typer.Option(help="Queries at a time; 0: the world's own.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of methods that draw.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    dtype: Annotated[
        str,
        typer.Option(help="auto, float32 or bfloat16; auto: bfloat16 on a GPU, whose records name it."),
    ] = "auto",
    out: Annotated[Path, typer.Option(help="Folder of records, table and picture.")] = Path("runs/compare"),
) -> None:
    """Compare methods and bounds on a world; interrupted runs continue, and finished rows are not run again.

    Example: factordiff compare toy-halves --out runs/first
    """
    typed = locals()
    from factordiff.cli import inputs
    from factordiff.cli.comparing import chosen_world, compare_and_show
    from factordiff.devices import choose_device

    settings: dict[str, Any] = {}
    if expert:
        settings["folders"] = inputs.named_folders(expert)
    settings |= {name: typed[name] for name in ("sequences", "puzzles") if typed[name] is not None}
    if dtype != "auto":
        settings["dtype"] = dtype
    world = chosen_world(name, settings)
    read = inputs.of_experts(settings.get("folders", {}).values()) + inputs.of_data(sequences, puzzles)
    asked = {option: typed[option] for option in ASKED}
    asked["device"] = choose_device(device)
    compare_and_show(_console(), world, read, against, split, out, asked)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)
