"""`factordiff reproduce`: the paper's tables and figures, each by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from factordiff.cli.app import app

PLAIN_WIDTH = 200  # of tables that go into a file: nothing is cut


@app.command("reproduce")
def reproduce_command(
    name: Annotated[
        str,
        Argument(
            help="composition, fitted, single-experts, overlap, voting, temperatures, routing-figures, compute, "
            "default-head, relatives, four, paper-networks, official, all, report (from the records alone), pack (all "
            "records into one small file), or plan (what a full run asks, and how long it takes)."
        ),
    ],
    limit: Annotated[int | None, Option(help="Only the first N queries of each list: a SUBSET.")] = None,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    out: Annotated[Path, Option(help="Folder of records and report.")] = Path("runs/reproduce"),
    batch: Annotated[int, Option(help="Queries at a time; 0 chooses for the device.")] = 0,
    only: Annotated[str, Option(help="Only these methods, experts or rows, joined by commas.")] = "",
    part: Annotated[str, Option(help="K/N: only every Nth batch, beginning with the Kth.")] = "1/1",
    minutes: Annotated[float, Option(help="Begin no batch after this time; 0: no end.")] = 0,
    seed: Annotated[int, Option(help="Seed of methods that draw.")] = 0,
    steps: Annotated[int, Option(help="Steps of the confidence-ordered decoding.")] = 128,
    particles: Annotated[int, Option(help="Particles of FKC and RNE.")] = 8,
    dtype: Annotated[str, Option(help="auto, float32 or bfloat16.")] = "auto",
    experts: Annotated[
        list[str] | None, Option("--expert", help="NAME=FOLDER: use this folder for that expert.")
    ] = None,
    compile: Annotated[
        bool | None,
        Option(help="Compile the experts and record their passes; by default in full runs on a GPU."),
    ] = None,
) -> None:
    """Run an experiment of the paper; interrupted runs continue, and finished rows are not run again.

    Example: factordiff reproduce single-experts --limit 12
    """
    options = locals()  # a field of the request for each
    from factordiff.cli.reproduction import ReproduceRequest, reproduce

    console, request = Console(), ReproduceRequest(**options)
    reproduce(request, console if console.is_terminal else Console(width=PLAIN_WIDTH))
