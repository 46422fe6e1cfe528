"""`factordiff reproduce`: the paper's tables and figures, each by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from factordiff.cli.app import app

PLAIN_WIDTH = 200  # of tables that go into a file: nothing is cut


@app.command("reproduce")
def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            help="composition, fitted, single-experts, overlap, voting, temperatures, routing-figures, compute, "
            "relatives, four, paper-networks, official, all, report (from the records alone), pack (all records into "
            "one small file), or plan (what a full run asks, and how long it takes)."
        ),
    ],
    limit: Annotated[
        int | None, typer.Option(help="Only the first N queries of each list: a SUBSET.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    out: Annotated[Path, typer.Option(help="Folder of records and report.")] = Path("runs/reproduce"),
    batch: Annotated[int, typer.Option(help="Queries at a time; 0 chooses for the device.")] = 0,
    only: Annotated[str, typer.Option(help="Only these methods, experts or rows, joined by commas.")] = "",
    part: Annotated[str, typer.Option(help="K/N: only every Nth batch, beginning with the Kth.")] = "1/1",
    minutes: Annotated[float, typer.Option(help="Begin no batch after this time; 0: no end.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of methods that draw.")] = 0,
    steps: Annotated[int, typer.Option(help="Steps of the confidence-ordered decoding.")] = 128,
    particles: Annotated[int, typer.Option(help="Particles of FKC and RNE.")] = 8,
    dtype: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    expert: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER: use this folder for that expert.")
    ] = None,
    compile: Annotated[
        bool | None,
        typer.Option(help="Compile the experts and record their passes; by default in full runs on a GPU."),
    ] = None,
    commit: Annotated[str, typer.Option(help="Name of the code, where git does not know it.")] = "",
) -> None:
    """Run an experiment of the paper; interrupted runs continue, and finished rows are not run again.

    Example: factordiff reproduce single-experts --limit 12
    """
    from factordiff.cli.reproduction import ReproduceRequest, reproduce

    request = ReproduceRequest(
        name=name,
        limit=limit,
        device=device,
        out=out,
        batch=batch,
        only=only,
        part=part,
        minutes=minutes,
        seed=seed,
        steps=steps,
        particles=particles,
        dtype=dtype,
        experts=expert or [],
        compile=compile,
        commit=commit,
    )
    console = Console()
    reproduce(request, console if console.is_terminal else Console(width=PLAIN_WIDTH))
