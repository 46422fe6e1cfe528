"""The demo on ARC: two shipped specialists answer published tests together, failures and all, on about one screen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import SIDE
from factordiff.arc.scoring import grid_right
from factordiff.cli import inputs
from factordiff.cli.answer_display import attempt_panel, show_task
from factordiff.cli.terminal_grids import EXPERTS, Panel, legend, side_by_side
from factordiff.files import check_folder
from factordiff.sampling.path import NOBODY, path_steps
from factordiff.solving.answer import Answer
from factordiff.solving.pictures import animation, picture, save_animation, save_picture
from factordiff.solving.solver import solve
from factordiff.team.team import Team, compose

SPECIALISTS = "col+occ"  # the paper's two, with its routing temperatures
PUBLISHED = 6  # tests shown: the first of the fixed list, not hand-picked
STEPS = 24  # in which that answer is filled, to be watched
PICTURE, ANIMATION = "demo.png", "demo.gif"
WIDTH = 600  # pixels of the animation, at least
SECONDS = 3.0  # that watching takes


def demonstrate(console: Console, experts: Sequence[str], folder: Path, count: int = PUBLISHED) -> None:
    """Answer the first published tests, show them all, one of them large, and count who was right.

    `experts` are names or folders; without any, the specialists.
    """
    read = inputs.of_experts(experts) if experts else inputs.of_team(SPECIALISTS)
    check_folder("--out", folder, (PICTURE, ANIMATION), read)
    team = compose(list(experts), reveal="fast") if experts else compose(SPECIALISTS)
    queries = Dataset.load().evaluation("official", count)
    answers = []
    for index in range(len(queries)):
        task = queries.task(index)
        with console.status(f"test {index + 1} of {len(queries)}: {task.id}"):
            (answer,) = solve(task, team, attempts=1)
            answers.append(answer)
            _ = answer.alone  # asked now, while the status line says what is going on
    place = featured(answers)
    answers[place] = watched(console, team, answers[place])
    _show_large(console, answers[place])
    others = [answer for index, answer in enumerate(answers) if index != place]
    if others:
        console.print(f"\nThe other {len(others)} of the first {len(answers)} published tests, together:")
        console.print(side_by_side(console, list(map(_titled, others))), soft_wrap=True)
    console.print()
    console.print(tally(answers, team))
    save_picture(picture(answers), folder / PICTURE)
    save_animation(animation(answers[place], WIDTH), folder / ANIMATION)
    console.print(
        f"\nwrote {folder / PICTURE} and {folder / ANIMATION}. Next:\n"
        f"  factordiff solve {answers[place].task} --show --explain   how it came about, cell by cell\n"
        "  factordiff solve TASK.json --html answers.html   a task of yours, as a page\n"
        "  factordiff play   the same in a browser: change experts, methods, cells",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def featured(answers: Sequence[Answer]) -> int:
    """The place of the answer to look at: of those that are right, the one in which both experts decide most.

    That is, the expert that decides fewer cells of the grid than any other decides the most there.
    """

    def rank(place: int) -> tuple[bool, int, int]:
        routing = answers[place].routing
        fewest = 0 if routing is None else min(routing.shares().values())
        return bool(answers[place].first_right), fewest, -place

    return max(range(len(answers)), key=rank)


def watched(console: Console, team: Team, answer: Answer) -> Answer:
    """The same test answered in many small steps, shown as it fills; the quick answer where only that is right."""
    with console.status(f"{answer.task} in {STEPS} steps"):
        slow = replace(team, reveal=f"confidence:{STEPS}")
        (stepped,) = solve(answer.question.task, slow, attempts=1)
    if answer.first_right and not stepped.first_right:
        stepped = answer
    if console.is_terminal:
        watch(console, stepped)
    return stepped


def watch(console: Console, answer: Answer) -> None:
    """Let the answer fill step by step, beside who decided."""
    told = path_steps(answer.samples)
    height, width = answer.shape
    cells, speakers = np.full((SIDE, SIDE), NOBODY), np.full((SIDE, SIDE), NOBODY)
    with Live(console=console, refresh_per_second=30, transient=True) as live:
        for step, path_step in enumerate(told, start=1):
            for cell in path_step.revealed:
                cells[divmod(cell, SIDE)] = path_step.after[cell]
                if path_step.routing is not None:
                    speakers[divmod(cell, SIDE)] = path_step.routing[cell]
            panels = [
                Panel(f"step {step}", cells[:height, :width]),
                Panel("decided by", speakers[:height, :width], EXPERTS),
            ]
            live.update(side_by_side(console, panels))
            time.sleep(SECONDS / len(told))


def _show_large(console: Console, answer: Answer) -> None:
    """The task, what each expert answers alone, what they answer together, and who decided."""
    team = answer.team
    console.print(f"\n[bold]{' + '.join(map(escape, team.names))}[/]: each cell by the expert that is surer")
    console.print(f"published ARC-AGI-1 task {answer.task}", style="dim")
    show_task(console, answer.question.task, tests=False)
    panels = [Panel("input", answer.query)]
    panels += [Panel(f"{EXPERTS.letter(index)} alone", one.grid) for index, one in enumerate(answer.alone)]
    panels.append(attempt_panel("together", answer.grid, answer.truth))
    if answer.routing is not None:
        panels.append(Panel("decided by", answer.routing.labels, EXPERTS))
    if answer.truth is not None:
        panels.append(Panel("truth", answer.truth))
    console.print(side_by_side(console, panels), soft_wrap=True)
    said = list(team.names)
    if answer.routing is not None:
        shares = answer.routing.shares().items()
        said = [f"{name}, decided {count} of {answer.grid.size} cells" for name, count in shares]
    console.print(legend(console, said))


def _titled(answer: Answer) -> Panel:
    """An answer by its task and whether it is right."""
    mark = {None: "", True: " right", False: " wrong"}[answer.first_right]
    return Panel(f"{answer.task}{mark}", answer.grid)


def tally(answers: Sequence[Answer], team: Team) -> Table:
    """How many of these tests each expert alone and the composition answered rightly, in one attempt."""
    judged = [(answer, answer.truth) for answer in answers if answer.truth is not None]
    table = Table(f"of these {len(judged)} tests, in one attempt", "right", show_edge=False, pad_edge=False)
    for place, name in enumerate(team.names):
        right = sum(grid_right([answer.alone[place].grid], truth) for answer, truth in judged)
        table.add_row(f"{name} alone", str(right))
    together = sum(grid_right([answer.grid], truth) for answer, truth in judged)
    table.add_row(Text("together", style="bold"), str(together))
    return table
