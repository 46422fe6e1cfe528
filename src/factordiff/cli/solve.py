"""`factordiff solve`: ARC tasks in, two attempts per test out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from factordiff.cli.app import app
from factordiff.cli.method_options import MethodCommand, given_options
from factordiff.errors import InvalidInput

SOME_REFUSED = 3
Source = Annotated[
    str,
    Argument(
        metavar="TASK",
        help="A task file, a folder, a challenges file, - for stdin, or the id of a published task.",
    ),
]


@app.command(cls=MethodCommand)
def solve(
    source: Source,
    experts: Annotated[
        str | None,
        Option(
            help="Names or folders of experts, joined by commas; the first wins ties. By default trans-full,conv-full."
        ),
    ] = None,
    team: Annotated[
        str,
        Option(
            help="A whole team with its numbers: full+full, occ+full, col+occ, col+occ-default-head, or a file."
        ),
    ] = "",
    method: Annotated[str, Option(help="How they answer together; see the guide.")] = "routing",
    reveal: Annotated[
        str,
        Option(
            help="fast, exact (one cell per pass), or a rule such as margin:0.9; by default what suits the method."
        ),
    ] = "",
    picture: Annotated[Path | None, Option(help="Draw all answers into this PNG.")] = None,
    animate: Annotated[Path | None, Option(help="Show how they filled, as a GIF.")] = None,
    trace: Annotated[Path | None, Option(help="Write every step as JSON.")] = None,
    html: Annotated[Path | None, Option(help="Write all answers into one page (HTML).")] = None,
    show: Annotated[bool, Option("--show", help="Show the demonstrations too.")] = False,
    attempts: Annotated[int, Option(min=1, max=2, help="1 leaves the second attempt out.")] = 2,
    explain: Annotated[bool, Option("--explain", help="Say who decided each cell, and why.")] = False,
    out: Annotated[Path | None, Option(help="Write an ARC Prize submission (JSON).")] = None,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    seed: Annotated[int, Option(help="Seed of methods that draw.")] = 0,
) -> None:
    """Answer ARC tasks with a team of experts.

    Example: factordiff solve 0ca9ddb6 --show --html answers.html

    Exit code 0: every task was answered. 3: some task was refused (too large for the 10x10 canvas, malformed), the
    others were answered. 1: nothing could be tried. 2: the command line itself was wrong. 130: Ctrl-C. The submission
    is written as the answers come: what was answered before an interruption or a full disk is in it.
    """
    from factordiff.cli import inputs
    from factordiff.cli.solve_display import Outputs, answer_all
    from factordiff.devices import choose_device
    from factordiff.files import MOST_BYTES
    from factordiff.sampling.rules import reveal_rule
    from factordiff.solving.pictures import check_path_to_show
    from factordiff.solving.solver import DEFAULT_EXPERTS
    from factordiff.solving.sources import STANDARD_INPUT, read_source
    from factordiff.team.router import with_router
    from factordiff.team.team import compose

    outputs = Outputs(picture, animate, trace, out, html, explain, show, attempts)
    names = [name.strip() for name in (experts or "").split(",") if name.strip()]
    alone = len(names) == 1 and method == "routing"
    options = given_options("single" if alone else method)
    if team and (experts is not None or options or method != "routing"):
        raise InvalidInput("--team: it has its experts, method and numbers; leave the others out")
    who = team or (list(DEFAULT_EXPERTS) if experts is None else names)
    read = [] if source == STANDARD_INPUT else inputs.of_tasks(Path(source), outputs.files().values())
    read += inputs.of_team(who) if isinstance(who, str) else inputs.of_experts(who)
    outputs.check([*read, *inputs.of_options(options)])
    tasks = read_source(source, sys.stdin.buffer.read(MOST_BYTES + 1) if source == STANDARD_INPUT else b"")
    together = with_router(compose(who, method, device=choose_device(device), **options))
    if reveal and reveal != together.reveal:
        together = replace(together, reveal=reveal_rule(reveal))
    if animate is not None:
        check_path_to_show(together)
    refused = answer_all(together, tasks, seed, outputs)
    if refused:
        raise typer.Exit(SOME_REFUSED)
