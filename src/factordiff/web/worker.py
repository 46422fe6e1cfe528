"""One worker, one bounded queue: requests are computed one after another, and nobody waits for ever."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable

from factordiff.errors import FactorDiffError
from factordiff.web.rate import Rate
from factordiff.web.run import Event, Work
from factordiff.web.stopping import STOPPING

OVER = None  # delivered after the last event of a job


class Stopped(Exception):
    """Nobody wants the answer any more, or it can no longer come in time."""


class Full(Exception):
    """The queue has no place left."""


class Job:
    """Work on its way through the worker; `deliver` gets each event as a line of JSON, then None."""

    def __init__(self, work: Work, deadline: float, deliver: Callable[[bytes | None], None]) -> None:
        self.work, self.deliver = work, deliver
        self.seconds = deadline
        self.deadline = time.monotonic() + deadline
        self.cancelled = False
        self.taken = False  # out of the queue: from here on the worker delivers, to the end

    def check(self) -> None:
        """Raise if this job should not go on."""
        if self.cancelled:
            raise Stopped("the client has left")
        if time.monotonic() > self.deadline:
            raise Stopped(
                f"the answer was not there within {self.seconds:g} seconds; ask for fewer steps, fewer particles or "
                "a later deadline"
            )

    def emit(self, event: Event) -> None:
        """Pass an event on to whoever waits."""
        if not self.cancelled:
            self.deliver(json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n")

    def refuse(self, status: int, reason: str) -> None:
        """End with a sentence instead of an answer."""
        self.emit({"event": "error", "status": status, "reason": reason})


class Worker:
    """A thread that computes one job at a time; at most `places` others wait."""

    def __init__(self, places: int, on_fault: Callable[[Exception], None] | None = None) -> None:
        self.places, self.on_fault = places, on_fault
        self.faults = Rate()  # a request that breaks the server can be sent again and again
        self.waiting: deque[Job] = deque()
        self.running: Job | None = None
        self.closed = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._work, name="factordiff-worker", daemon=True)
        self.thread.start()

    def check_room(self) -> None:
        """Raise `Full` if a job that came now would be refused."""
        if self.closed:
            raise Full(STOPPING)
        if len(self.waiting) >= self.places:
            raise Full(f"the server is busy: {len(self.waiting)} requests are waiting; try again soon")

    def submit(self, job: Job) -> None:
        """Put a job into the queue, or raise `Full`."""
        with self.changed:
            self.check_room()
            self.waiting.append(job)
            self.changed.notify()

    def cancel(self, job: Job) -> None:
        """Forget a job: one that waits leaves its place at once, one that runs stops before its next pass."""
        job.cancelled = True
        with self.changed:
            if job in self.waiting:
                self.waiting.remove(job)

    def stop(self) -> None:
        """Take no more jobs; whoever waits for one hears it now, even while a pass is under way."""
        with self.changed:
            self.closed = True
            for job in [*self.waiting, *([] if self.running is None else [self.running])]:
                job.taken = True
                job.refuse(503, STOPPING)
                job.deliver(OVER)
                job.cancelled = True  # what it may still say is for nobody
            self.waiting.clear()
            self.changed.notify()

    def close(self) -> None:
        """Stop, and wait for the thread to end."""
        self.stop()
        self.thread.join(timeout=10)

    def _work(self) -> None:
        while True:
            with self.changed:
                self.running = None
                while not self.waiting and not self.closed:
                    self.changed.wait()
                if self.closed:
                    return
                job = self.running = self.waiting.popleft()
                job.taken = True
            self._compute(job)
            del job  # a job's grids are not to outlive it until the next one comes

    def _compute(self, job: Job) -> None:
        try:
            job.check()
            job.work(job.emit, job.check)
        except Stopped as stopped:
            job.refuse(503, str(stopped))
        except FactorDiffError as error:
            job.refuse(422, str(error))
        except Exception as fault:
            job.refuse(500, "something went wrong inside the server; its operator sees what")
            if self.on_fault is not None and self.faults.take() is not None:
                self.on_fault(fault)
        finally:
            job.deliver(OVER)
