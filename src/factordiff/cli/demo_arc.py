"""The demo on ARC: two shipped experts answer held-out queries together, failures and all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import SIDE
from factordiff.cli.solve_display import drawn_cells, drawn_speakers, show
from factordiff.files import check_folder
from factordiff.solving.answer import Answer
from factordiff.solving.pictures import animation, picture, save_animation, save_picture
from factordiff.solving.story import NOBODY, chapters
from factordiff.solving.team import Team, compose

HELD_OUT, PUBLISHED = 8, 4  # queries shown: the first of each fixed list, not hand-picked
PICTURE, ANIMATION = "demo.png", "demo.gif"
SECONDS_PER_STEP = 0.06


def specialists() -> Team:
    """The paper's two specialists with its routing temperatures."""
    return compose("col+occ")


def demonstrate(console: Console, experts: Sequence[str], folder: Path, held_out: int = HELD_OUT) -> None:
    """Answer the first held-out and the first published queries, show everything, and count who was right.

    `experts` are names or folders; without any, the specialists.
    """
    check_folder("--out", folder)
    team = compose(list(experts), reveal="fast") if experts else specialists()
    dataset = Dataset.load()
    console.print(f"\n[bold]{' + '.join(team.names)}, each cell by the expert that is surer[/]")
    console.print(
        f"The first {held_out} held-out queries of the fixed list, then the first {PUBLISHED} published ARC-AGI-1 "
        "tests. Each expert is a denoiser of about a million parameters; nothing was trained for their composition.\n",
        highlight=False,
    )
    lists = [
        ("held-out", dataset.evaluation("test", held_out)),
        ("published", dataset.evaluation("official", PUBLISHED)),
    ]
    answered: list[tuple[str, Answer]] = []
    for kind, queries in lists:
        for index in range(len(queries)):
            task = queries.task(index)
            first = not answered  # this one cell by cell, to be watched; the others with what is sure at once
            with console.status(f"{kind} query {index + 1} of {len(queries)}: {task.id}"):
                (answer,) = (replace(team, reveal="exact") if first else team).solve(task)
            if first and console.is_terminal:
                watch(console, answer)
            answered.append((kind, answer))
            show(console, answer)
    console.print()
    console.print(tally(answered, team))
    save_picture(picture([answer for _, answer in answered]), folder / PICTURE)
    save_animation(animation(answered[0][1]), folder / ANIMATION)
    console.print(f"\nwrote {folder / PICTURE} and {folder / ANIMATION}", highlight=False)


def watch(console: Console, answer: Answer) -> None:
    """Let the answer fill cell by cell, beside who decided."""
    colored = console.color_system is not None and not console.no_color
    told = chapters(answer.samples)
    height, width = answer.shape
    cells, speakers = np.full((SIDE, SIDE), NOBODY), np.full((SIDE, SIDE), NOBODY)
    with Live(console=console, refresh_per_second=30, transient=True) as live:
        for step, chapter in enumerate(told, start=1):
            for cell in chapter.revealed:
                cells[divmod(cell, SIDE)] = chapter.after[cell]
                if chapter.routing is not None:
                    speakers[divmod(cell, SIDE)] = chapter.routing[cell]
            pair = Table.grid(padding=(0, 3))
            pair.add_row(Text(f"{answer.task}, step {step}", style="dim"), Text("decided by", style="dim"))
            pair.add_row(
                drawn_cells(cells[:height, :width], colored),
                drawn_speakers(speakers[:height, :width], colored),
            )
            live.update(pair)
            time.sleep(SECONDS_PER_STEP)


def tally(answered: Sequence[tuple[str, Answer]], team: Team) -> Table:
    """How many queries each expert alone and the composition answered rightly, in one attempt."""
    kinds = list(dict.fromkeys(kind for kind, _ in answered))
    table = Table("one attempt", *(f"{kind}, right" for kind in kinds), show_edge=False, pad_edge=False)
    for place, name in enumerate(team.names):
        table.add_row(f"{name} alone", *_right(answered, kinds, place))
    table.add_row(Text("per-pixel routing", style="bold"), *_right(answered, kinds, None))
    return table


def _right(answered: Sequence[tuple[str, Answer]], kinds: Sequence[str], place: int | None) -> list[str]:
    counts = []
    for kind in kinds:
        judged = [
            np.array_equal(answer.grid if place is None else answer.alone[place].grid, answer.truth)
            for one, answer in answered
            if one == kind and answer.truth is not None
        ]
        counts.append(f"{sum(judged)} of {len(judged)}")
    return counts
