"""Parts of a request side by side, each in a thread that computes alone.

Threads that share every small operation wait for each other a hundred times a pass: on two quiet processors that costs
a fifth of the time, and on busy ones, where one of them is late every time, many times the work. Threads with rows of
their own wait once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from factordiff.experts.expert import Expert, thread_safe

WAKING = 0.1  # seconds: a signal that another thread caught is seen by this one when it wakes
T = TypeVar("T")
GoOn = Callable[[], None]

_computing = threading.Lock()  # how many threads an operation takes is a number of the whole process


class _Stopped(Exception):
    """Another part failed, or the caller was interrupted."""


def threads_for(experts: Sequence[Expert], device: torch.device, most: int) -> int:
    """How many threads may ask these experts at once, at most so many: on a CPU, where all of them say so."""
    able = device.type == "cpu" and not torch.is_autocast_enabled("cpu") and thread_safe(experts)
    return max(1, most) if able else 1


def side_by_side(work: Callable[[int, GoOn], T], parts: int) -> list[T]:
    """What `work(part, go_on)` gives for every part; it calls `go_on` now and then, which ends it if all is over.

    One after the other in this thread if there is one part, or if another request is computing so already.
    """
    if parts == 1 or not _computing.acquire(blocking=False):
        return [work(part, lambda: None) for part in range(parts)]
    stop, threads, gradients = threading.Event(), torch.get_num_threads(), torch.is_grad_enabled()

    def go_on() -> None:
        if stop.is_set():
            raise _Stopped

    def alone(part: int) -> T:
        torch.set_num_threads(1)
        try:
            with torch.set_grad_enabled(gradients):
                return work(part, go_on)
        except BaseException:
            stop.set()
            raise

    try:
        with ThreadPoolExecutor(parts, thread_name_prefix="factordiff") as pool:
            try:
                running = [pool.submit(alone, part) for part in range(parts)]
                while wait(running, timeout=WAKING).not_done:
                    pass
            except BaseException:  # an interruption reaches this thread alone
                stop.set()
                raise
    finally:
        torch.set_num_threads(threads)
        _computing.release()
    errors = [error for one in running if (error := one.exception()) is not None]
    for error in errors:
        if not isinstance(error, _Stopped):
            raise error
    return [one.result() for one in running]
