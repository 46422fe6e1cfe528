"""Signals as a polite request: finish the step, save, leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def caught_signals() -> Iterator[Callable[[], str]]:
    """Hold back SIGTERM and SIGINT; yields a function that names the first one that came, or returns ''."""
    caught: list[str] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: ""  # only the main thread may listen
        return

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(signal.Signals(number).name)

    before = {kind: signal.signal(kind, note) for kind in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: caught[0] if caught else ""
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
