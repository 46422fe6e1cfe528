"""How far a build of data is, in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
