"""The demo of a world: one query answered step by step, and who decided each cell."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from factordiff.arc.grid import COLORS
from factordiff.arc.svg import expert_color
from factordiff.cli.comparing import chosen_world
from factordiff.cli.demo_arc import demonstrate
from factordiff.cli.progress import stage_bars
from factordiff.cli.terminal_grids import EXPERTS, Panel, legend, side_by_side
from factordiff.sampling.path import NOBODY, filling
from factordiff.sampling.samples import Samples
from factordiff.team.team import Team
from factordiff.worlds.arc_pairs import ArcPair
from factordiff.worlds.catalogue import compare_world
from factordiff.worlds.compare import prepared_setting
from factordiff.worlds.comparison import Comparison
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Setting
from factordiff.worlds.world import World

MOST_NAMED = 6  # experts that a legend names
SECONDS = 12.0  # that watching may take
RIGHT, WRONG = "green", "bold red"
RESIDUES_IN_A_LINE = 64
MOST_COLUMNS = 100  # of bars
EXACT = 1e-12  # a distance below is rounding

# (cells, who decided each, the query, where it is drawn)
Drawing = Callable[[list[int], list[int], Queries, Console], RenderableType]


def demonstrate_world(console: Console, name: str, experts: str, folder: Path) -> None:
    """The demo of a world by name; `experts` are NAME=FOLDER, joined by commas, for worlds of trained ones."""
    named = dict(part.strip().split("=", 1) for part in experts.split(",") if "=" in part)
    world = chosen_world(name, {"folders": named} if named else {})
    if isinstance(world, ArcPair):
        members = [str(named.get(member, member)) for member in world.members]
        demonstrate(console, members, folder)
    else:
        watch(console, world)


def watch(console: Console, world: World) -> None:
    """Show a world at work: an enumerated one as a bar for each row, the others as a query being filled."""
    console.print(f"\n[bold]{world.name}[/]: {world.tests}\n", highlight=False)
    if world.metric.mode == "enumerated":
        with stage_bars(console, "every method, enumerated") as on_progress:
            table = compare_world(world, on_progress=on_progress)
        console.print(draw_distances(table, console), soft_wrap=True)
        console.print(f"what was fitted, and the whole table: factordiff compare {world.name}", style="dim")
        return
    with console.status("experts and a query"):
        found = world.experts("cpu")
        queries = world.example()
    setting = prepared_setting(
        found.experts,
        world.metric,
        objectives=found.objectives,
        layout=world.layout,
        reveal=world.reveal,
        device="cpu",
        batch=1,
        rows=world.rows,
    )
    method, team = _team(world, setting, queries)
    with console.status(f"answering by {method}"):
        samples = team.sample(queries.x_t, queries.condition, trace=True)
    drawings: dict[str, Drawing] = {
        "sudoku": draw_sudoku,
        "antibody": draw_sequence,
        "code-prose": draw_text,
    }
    draw = drawings.get(world.name, draw_grids)
    assert samples.trace is not None
    scenes = filling(samples.trace, queries.x_t[0].tolist())
    if console.is_terminal:
        with Live(console=console, refresh_per_second=20, transient=True) as live:
            for cells, speakers in scenes:
                live.update(draw(cells, speakers, queries, console))
                time.sleep(min(0.15, SECONDS / len(scenes)))
    console.print(f"{method}, {len(scenes) - 1} steps, {int(samples.executed_passes[0]) * world.rows} passes")
    console.print(draw(*scenes[-1], queries, console))
    if len(team) > MOST_NAMED:
        console.print(f"{len(team)} experts speak at every cell", style="dim")
    else:
        console.print(legend(console, team.names))
    console.print(said(samples, queries), highlight=False)


def _team(world: World, setting: Setting, queries: Queries) -> tuple[str, Team]:
    """The method that the world is about: its own if it has one that answers by decoding, else the best known."""
    own = world.entries().get("demonstrations")
    if own is not None and own.prepare is not None:
        return own.label, own.prepare(setting)(queries).teams[0]
    method = "product" if world.name == "sudoku" else "routing"
    return method, setting.team(method)


def said(samples: Samples, queries: Queries) -> str:
    """How many cells are right."""
    hidden = queries.x_t[0] != queries.x_0[0]
    right = int((samples.x_0[0] == queries.x_0[0])[hidden].sum())
    return f"{right} of {int(hidden.sum())} hidden cells are right"


def draw_distances(table: Comparison, console: Console) -> Text:
    """A bar for each row, as long as it is far from the truth; the exact ones have none."""
    main = table.main
    width = max(len(row.label) for row in table.rows)
    far = max(row.value(main) for row in table.rows)
    bar = "#" if console.options.ascii_only else "█"
    room = max(1, min(console.width, MOST_COLUMNS) - width - len("  0.000  "))
    shown, family = Text(), ""
    for row in table.rows:
        if row.family != family:
            family = row.family
            shown.append(f"{family}\n", style="bold")
        value = row.value(main)
        exact = value < EXACT
        shown.append(f"{row.label:<{width}}  {main.shown(value)}  ")
        shown.append("exact" if exact else bar * max(1, round(room * value / far)), RIGHT if exact else "")
        shown.append("\n")
    shown.rstrip()
    return shown


def draw_sudoku(cells: list[int], speakers: list[int], queries: Queries, console: Console) -> RenderableType:
    """The grid: given cells bold, filled ones green, or red and marked where they are wrong."""
    given = (queries.x_t[0] != 9).tolist()
    truth = queries.x_0[0].tolist()
    grid = Text()
    for cell, value in enumerate(cells):
        style = "bold" if given[cell] else RIGHT if value == truth[cell] else WRONG
        mark = " " if value in (9, truth[cell]) else "!"
        grid.append(". " if value == 9 else f"{value + 1}{mark}", style="dim" if value == 9 else style)
        row, column = divmod(cell, 9)
        if column in (2, 5):
            grid.append("| ", style="dim")
        if column == 8:
            grid.append("\n------+-------+------\n" if row in (2, 5) else "\n")
    return grid


def draw_sequence(
    cells: list[int], speakers: list[int], queries: Queries, console: Console
) -> RenderableType:
    """A sequence of residues, so many in a line."""
    from factordiff.worlds.antibody.sequences import RESIDUES

    starts = range(0, len(cells), RESIDUES_IN_A_LINE)
    lines = [range(first, min(first + RESIDUES_IN_A_LINE, len(cells))) for first in starts]
    return in_lines(lines, RESIDUES, cells, speakers, queries)


def draw_text(cells: list[int], speakers: list[int], queries: Queries, console: Console) -> RenderableType:
    """A text, line by line."""
    from factordiff.text.alphabet import LETTERS, NEWLINE

    ends = [place + 1 for place, value in enumerate(queries.x_0[0].tolist()) if value == NEWLINE]
    borders = sorted({0, *ends, len(cells)})
    lines = [range(first, last) for first, last in pairwise(borders)]
    return in_lines(lines, LETTERS.replace("\n", " "), cells, speakers, queries)


def in_lines(
    lines: list[range], symbols: str, cells: list[int], speakers: list[int], queries: Queries
) -> Text:
    """Lines of symbols, below each who decided its hidden cells, and below that a mark under the wrong ones."""
    mask, truth = len(symbols), queries.x_0[0].tolist()
    given = (queries.x_t[0] != mask).tolist()
    shown = Text()
    for places in lines:
        for place in places:
            style = "dim" if given[place] or speakers[place] < 0 else f"on {expert_color(speakers[place])}"
            shown.append("_" if cells[place] == mask else symbols[cells[place]], style=style)
        deciders = "".join(
            " " if speakers[place] < 0 else EXPERTS.letter(speakers[place]) for place in places
        )
        wrong = "".join("^" if cells[place] not in (truth[place], mask) else " " for place in places)
        below = [marks.rstrip() for marks in (deciders, wrong) if marks.strip()]
        shown.append("\n" + "".join(f"{marks}\n" for marks in below), style="dim")
    return shown


def draw_grids(cells: list[int], speakers: list[int], queries: Queries, console: Console) -> RenderableType:
    """The canvas, who decided, and the true owners where they are known."""
    side = round(len(cells) ** 0.5)

    def square(values: list[int]) -> np.ndarray:
        return np.array(values).reshape(side, side)

    shown = [NOBODY if value == COLORS.mask else value for value in cells]
    panels = [Panel("answer", square(shown)), Panel("decided by", square(speakers), EXPERTS)]
    if queries.owners is not None:
        panels.append(Panel("owner", square(queries.owners[0].tolist()), EXPERTS))
    return side_by_side(console, panels)
