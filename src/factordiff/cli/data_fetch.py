"""`factordiff data fetch`: published models that a world needs and no extra can list."""

from __future__ import annotations

from typing import Annotated

import typer

from factordiff.cli.data import console, data
from factordiff.errors import Unavailable


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="antibody: Sapiens and AntiBERTy, 100 MB in all.")],
) -> None:
    """Download published models with pip, check their hashes, and keep their weights as safetensors.

    They go to $FACTORDIFF_DATA, by default ~/.cache/factordiff. Neither package is installed or imported.

    Example: factordiff data fetch antibody
    """
    if name != "antibody":
        raise Unavailable(f"fetch: expected antibody, got {name!r}")
    from factordiff.worlds.antibody.fetching import fetch as fetch_models

    fetch_models(console.print)
