"""`factordiff diagnose`: whether experts need weights per cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from factordiff.cli.app import app
from factordiff.cli.fit import Data, Layout


@app.command("diagnose")
def diagnose_command(
    experts: Annotated[str, Argument(help="Names or folders of experts, joined by commas.")],
    data: Data = None,
    layout: Layout = "",
    items: Annotated[int, Option(help="Validation queries that are looked at.")] = 240,
    picture: Annotated[Path | None, Option(help="Draw the diagnosis into this PNG.")] = None,
    out: Annotated[Path | None, Option(help="Write the numbers as JSON.")] = None,
    seed: Annotated[int, Option(help="Seed of the hidden cells and of the router.")] = 0,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Say how many hidden cells each way of combining gets right, and whether a router is needed.

    Example: factordiff diagnose trans-color,trans-occ --items 12 --picture diagnosis.png

    Right answers are shown in part, at four mask rates, and every expert is asked once; nothing is decoded. Product,
    mixture and temperatures are the best there are on these very cells; the router is fitted on other queries.
    """
    from factordiff.cli.fitting import DiagnoseRequest, diagnose

    names = [name.strip() for name in experts.split(",") if name.strip()]
    diagnose(DiagnoseRequest(names, data, layout, items, picture, out, seed, device), Console())
