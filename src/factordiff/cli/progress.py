"""How far something is, in a terminal: a build of data, or the stages of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[str, int], None]]:
    """A bar with rate and time left; what it yields hears (task, how many so far)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    found: dict[str, int] = {}
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(what, total=total, rate=0.0)

        def hear(task: str, count: int) -> None:
            found[task] = count
            done = sum(found.values())
            progress.update(bar, completed=done, rate=done / max(time.monotonic() - started, 1e-3))

        yield hear


@contextmanager
def stage_bars(console: Console, before: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time left for each stage (stage, done, total) as it is heard of, and one `before` the first."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        waiting = progress.add_task(before, total=None, visible=bool(before))
        bars: dict[str, Any] = {}

        def hear(stage: str, done: int, total: int) -> None:
            progress.update(waiting, visible=False)
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=total)
            progress.update(bars[stage], completed=done, total=total)

        yield hear
