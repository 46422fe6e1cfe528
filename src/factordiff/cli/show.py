"""`factordiff show`: a task as the experts are shown it."""

from __future__ import annotations

import sys

import typer

from factordiff.cli.app import app
from factordiff.cli.solve import SOME_REFUSED, Source


@app.command()
def show(source: Source) -> None:
    """Draw tasks: what is shown, what is asked, and the answers where they are known.

    Example: factordiff show 0ca9ddb6
    """
    from rich.console import Console
    from rich.markup import escape

    from factordiff.arc.published import is_familiar, looks_like_an_id
    from factordiff.arc.task import Task
    from factordiff.cli.answer_display import show_task
    from factordiff.cli.terminal_grids import plain_console
    from factordiff.solving.sources import STANDARD_INPUT, read_source

    console = plain_console()
    complaints = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    tasks = read_source(source, sys.stdin.buffer.read() if source == STANDARD_INPUT else b"")
    for task in tasks:
        if not isinstance(task, Task):
            complaints.print(f"refused: {task.reason}")
            continue
        published = ""
        if looks_like_an_id(source):
            known = is_familiar(task.id)
            published = (
                ", a published task; the shipped experts "
                f"{'were trained on others of its kind' if known else 'were never trained on its kind'}"
            )
        console.print(f"[bold]{escape(task.id)}[/]{published}")
        show_task(console, task)
    if not all(isinstance(task, Task) for task in tasks):
        raise typer.Exit(SOME_REFUSED)
