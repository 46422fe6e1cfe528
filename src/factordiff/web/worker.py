"""One worker, one bounded queue: requests are computed one after another, and nobody waits for ever."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable

from factordiff.errors import FactorDiffError
from factordiff.web.run import Event, Prepared, perform

OVER = None  # delivered after the last event of a job


class Stopped(Exception):
    """Nobody wants the answer any more, or it can no longer come in time."""


class Full(Exception):
    """The queue has no place left."""


class Job:
    """A prepared request on its way through the worker; `deliver` gets each event as a line of JSON, then None."""

    def __init__(self, prepared: Prepared, deadline: float, deliver: Callable[[bytes | None], None]) -> None:
        self.prepared, self.deliver = prepared, deliver
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
        self.waiting: deque[Job] = deque()
        self.running: Job | None = None
        self.closed = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._work, name="factordiff-worker", daemon=True)
        self.thread.start()

    def check_room(self) -> None:
        """Raise `Full` if a job that came now would be refused."""
        if self.closed:
            raise Full("the server is stopping")
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

    def close(self) -> None:
        """Stop the job that runs, drop those that wait, and end the thread."""
        with self.changed:
            self.closed = True
            for job in self.waiting:
                job.taken = True
                job.refuse(503, "the server is stopping")
                job.deliver(OVER)
            self.waiting.clear()
            if self.running is not None:
                self.running.cancelled = True
            self.changed.notify()
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
            perform(job.prepared, job.emit, job.check)
        except Stopped as stopped:
            job.refuse(503, str(stopped))
        except FactorDiffError as error:
            job.refuse(422, str(error))
        except Exception as fault:
            job.refuse(500, "something went wrong inside the server; its operator sees what")
            if self.on_fault is not None:
                self.on_fault(fault)
        finally:
            job.deliver(OVER)
