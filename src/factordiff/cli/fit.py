"""`factordiff fit`: a router or a method's numbers, fitted on validation queries."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from factordiff.cli.app import app

Data = Annotated[
    Path | None,
    Option(help="A safetensors file with `answers` (item, cell) in place of ARC's validation queries."),
]
OPTIONS = (
    "budget",
    "seed",
    "kind",
    "bias",
    "complement",
    "evidence",
    "steps",
    "measure",
)  # as `Team.fit` takes it
TOLD = (
    "data",
    "layout",
    "items",
    "held",
    "rounds",
    "kind",
    "head",
    "bias",
    "complement",
    "evidence",
    "steps",
    "seed",
)
Layout = Annotated[str, Option(help="With --data: height x width of the cells, as 10x10.")]


@app.command("fit")
def fit_command(
    experts: Annotated[str, Argument(help="Names or folders of experts, joined by commas.")],
    method: Annotated[
        str,
        Option(
            help="learned (a router), or the method whose numbers are fitted: routing, product, mixture, superdiff, "
            "rne, evidence."
        ),
    ] = "learned",
    out: Annotated[
        Path | None, Option(help="Folder of the result. By default runs/fit-EXPERTS-METHOD.")
    ] = None,
    data: Data = None,
    layout: Layout = "",
    items: Annotated[int, Option(help="Queries that are fitted on, of 30 instances of each task.")] = 720,
    held: Annotated[int, Option(help="Queries that choose, of the 10 others.")] = 240,
    rounds: Annotated[int, Option(help="Repeat them with other demonstrations.")] = 1,
    budget: Annotated[int, Option(help="Settings tried on the held-out queries; the same for all.")] = 8,
    kind: Annotated[str, Option(help="Of a router: shared (small) or neighbourhood.")] = "shared",
    head: Annotated[str, Option(help="Of a router: mixture, product, or both are tried.")] = "both",
    bias: Annotated[bool, Option("--bias", help="A number per expert in the router.")] = False,
    complement: Annotated[
        bool, Option("--complement", help="Logits of the router's own: no composition alone.")
    ] = False,
    evidence: Annotated[
        bool, Option("--evidence", help="The router sees how well experts predicted what is visible.")
    ] = False,
    steps: Annotated[int, Option(help="Steps of a router's fit.")] = 600,
    measure: Annotated[bool, Option(help="Answer the held-out queries with the chosen router.")] = True,
    reveal: Annotated[str, Option(help="Reveal rule of the answers; by default what suits.")] = "",
    seed: Annotated[int, Option(help="Seed of the fit.")] = 0,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Fit what a method leaves open, and say what was tried. The experts stay as they are.

    Example: factordiff fit trans-color,trans-occ --items 24 --held 12 --steps 60 --out runs/router

    Stop it anywhere and call it again: it goes on. The folder then holds team.json, which `factordiff solve --team`
    takes, report.json and, of a router, its config, weights and card.
    """
    typed = locals()
    from factordiff.cli.fitting import FitRequest, fit

    names = [name.strip() for name in experts.split(",") if name.strip()]
    label = "+".join(Path(name).name for name in names)
    folder = out or Path("runs") / f"fit-{label}-{method}"
    options = {option: typed[option] for option in OPTIONS}
    request = FitRequest(
        names, method, folder, data, layout, items, held, rounds, head, reveal, device, options, said(typed)
    )
    fit(request, Console())


def said(typed: Mapping[str, Any]) -> str:
    """The command of a router's fit, as its card has it: what the router depends on and is not as it comes."""
    usual = signature(fit_command).parameters
    words = ["factordiff", "fit", typed["experts"]]
    for name in TOLD:
        value = typed[name]
        if value != usual[name].default:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return shlex.join(words)
