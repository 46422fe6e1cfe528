"""`factordiff demo`: two experts at work on ARC, or on tiny worlds where one sees which compositions are exact."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.columns import Columns
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text
from typer import Option

from factordiff.cli.app import app

if TYPE_CHECKING:
    from factordiff.toy.exactness import Measured

WIDE = 100  # columns that leave room for a reading of each line


@app.command()
def demo(
    toy: Annotated[bool, Option("--toy", help="Tiny exact worlds in place of ARC grids.")] = False,
    world: Annotated[str, Option(help="A world of `factordiff worlds`, such as sudoku.")] = "",
    experts: Annotated[
        str, Option(help="Names or folders, in place of trans-color,trans-occ; with --world NAME=FOLDER.")
    ] = "",
    out: Annotated[Path, Option(help="Where the picture and the animation go.")] = Path("."),
    draws: Annotated[
        int, Option(help="With --toy: particles drawn for each Monte Carlo line of the table.")
    ] = 48_000,
    seed: Annotated[int, Option(help="With --toy: every random number is a function of this.")] = 0,
) -> None:
    """Watch two experts answer ARC queries together; with --toy, see which compositions are exact.

    Example: factordiff demo --toy --draws 4000 --seed 1
    """
    from factordiff.cli.terminal_grids import plain_console

    console = plain_console()
    if toy:
        _exactness(console, draws, seed)
        return
    if world:
        from factordiff.cli.demo_world import demonstrate_world

        demonstrate_world(console, world, experts, out)
        return
    from factordiff.cli.demo_arc import demonstrate

    demonstrate(console, [name.strip() for name in experts.split(",") if name.strip()], out)


def _exactness(console: Console, draws: int, seed: int) -> None:
    """The table of distances on tiny worlds, then a picture painted by two experts."""
    import torch

    from factordiff.toy.exactness import measurements

    torch.set_num_threads(1)  # the tensors are tiny: more threads only get in each other's way
    console.print(Text.from_markup("\n[bold]Which compositions draw from what they promise?[/]"))
    console.print(
        "Tiny worlds of 4 cells and 3 values, so that every path can be enumerated. The distance is total "
        "variation, between the law of the sampler and its target: 0 is exact, 1 is nothing in common.\n"
    )
    with console.status("enumerating") as status:
        found = []
        for measured in measurements(draws, seed):
            found.append(measured)
            status.update(f"{measured.world}: {measured.method}")
    wide = console.width >= WIDE
    console.print(distances(found, readings=wide))
    console.print(
        "(noise): drawn, not enumerated; a perfect sampler would show about the distance in brackets.\n"
        "none; ...: the method states no target, so the nearest thing to one is used.\n"
        + ("" if wide else f"A window of {WIDE} columns also shows how to read each line.\n"),
        style="dim",
        highlight=False,
    )
    _paint(console, seed)


def distances(found: list[Measured], readings: bool = True) -> Table:
    """The table of distances, one section per world."""
    table = Table(pad_edge=False, show_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("held against", no_wrap=True)
    table.add_column("distance", justify="right", no_wrap=True)
    table.add_column("exact")
    if readings:
        table.add_column("reading", style="dim")
    world = ""
    for row in found:
        if row.world != world:
            world = row.world
            table.add_section()
            table.add_row(Text(world, style="bold cyan"))
        table.add_row(
            f"  {row.method}",
            row.target,
            in_figures(row),
            Text("yes", style="bold green") if row.exact else Text("no", style="red"),
            *([row.remark] if readings else []),
        )
    return table


def in_figures(row: Measured) -> Text:
    """The distance, with its noise where it has any."""
    if row.exact:
        return Text(f"{row.distance:.0e}", style="green")
    noise = "" if row.noise is None else f" ({row.noise:.3f})"
    return Text(f"{row.distance:.3f}{noise}")


def _paint(console: Console, seed: int) -> None:
    """Paint with routing, step by step where there is a terminal to watch, then show all methods."""
    from factordiff.cli.painting_display import gallery_picture, scene
    from factordiff.cli.terminal_grids import EXPERTS, swatch
    from factordiff.sampling.path import NOBODY, filling
    from factordiff.toy.painting import methods, paint

    console.print(Text.from_markup("[bold]Two experts paint one picture[/]"))
    console.print(
        "One knows the frame and what lies near it, the other the middle; elsewhere each is 70 % sure of a "
        "habit that is wrong. Routing asks, cell by cell, who is surer. Right: who decided.\n",
        highlight=False,
    )
    trace = paint("routing", seed, draws=1, trace=True).samples.trace
    assert trace is not None
    scenes = filling(trace, [NOBODY] * len(trace.start[0]))
    if console.is_terminal:
        with Live(console=console, refresh_per_second=30) as live:
            for step, (cells, speakers) in enumerate(scenes):
                live.update(scene(console, f"step {step} of {len(scenes) - 1}", cells, speakers))
                time.sleep(0.12)
    else:
        some = range(0, len(scenes), max(1, (len(scenes) - 1) // 4))
        shown = [scene(console, f"step {step}", *scenes[step]) for step in some]
        console.print(Columns(shown, padding=(1, 3)))
    edges, middle = swatch(console, EXPERTS, 0), swatch(console, EXPERTS, 1)
    console.print(Text.assemble("\n", edges, " the edges' expert  ", middle, " the middle's expert\n"))

    pictures = [gallery_picture(console, paint(method, seed)) for method in methods()]
    console.print(Columns(pictures, padding=(1, 2)))
    console.print(
        "\nEach shows one draw and, below, the cells that are right on average over 200 draws. Global weights "
        "let one expert's habit into the other's home; the routing map keeps it out.",
        style="dim",
        highlight=False,
    )
