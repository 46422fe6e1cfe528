"""Tasks and answers in a terminal: what was shown, what was asked, both attempts, who decided, what is wrong."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.markup import escape

from factordiff.arc.grid import Grid
from factordiff.arc.task import Task
from factordiff.cli.terminal_grids import EXPERTS, Panel, legend, side_by_side
from factordiff.printable import printable
from factordiff.solving.answer import Answer
from factordiff.solving.wording import sentences

VERDICTS = {None: "", True: "  [green]right[/]", False: "  [red]wrong[/]"}


def show_task(console: Console, task: Task, tests: bool = True) -> None:
    """The demonstrations of a task and, if asked for, its tests."""
    for name, pairs in (("shown", task.demonstrations), ("asked", task.tests if tests else ())):
        panels = []
        for number, pair in enumerate(pairs):
            panels.append(Panel(f"{name} {number}", pair.input))
            if pair.output is not None:
                panels.append(Panel("becomes", pair.output))
        if panels:
            console.print(side_by_side(console, panels), soft_wrap=True)


def show_answer(console: Console, answer: Answer) -> None:
    """One answer: input, attempts, who decided, and the truth where it is known."""
    console.print(
        f"\n[bold]{escape(printable(answer.task))}[/], test {answer.number}{VERDICTS[answer.right]}"
    )
    console.print(side_by_side(console, panels_of(answer)), soft_wrap=True)
    if answer.routing is not None:
        shares = answer.routing.shares().items()
        console.print(legend(console, [f"{printable(name)}: {count} cells" for name, count in shares]))
    for sentence in sentences(answer):
        console.print(sentence, style="dim", markup=False)


def panels_of(answer: Answer) -> list[Panel]:
    """The grids of an answer, in the order in which they are looked at."""
    panels = [Panel("input", answer.query), attempt_panel("attempt 1", answer.grid, answer.truth)]
    if answer.routing is not None:
        panels.append(Panel("decided by", answer.routing.labels, EXPERTS))
    if answer.second is not None:
        panels.append(attempt_panel("attempt 2", answer.second.grid, answer.truth))
    if answer.truth is not None:
        panels.append(Panel("truth", answer.truth))
    return panels


def attempt_panel(title: str, grid: Grid, truth: Grid | None) -> Panel:
    """An attempt, its wrong cells marked; of another shape than the truth it has none in particular."""
    if truth is None or truth.shape != grid.shape:
        return Panel(title, grid)
    return Panel(title, grid, wrong=np.not_equal(grid, truth))
