"""So many in a while, and no more: what a stranger can cause again and again is not written down each time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

MOST, SECONDS = 20, 60.0  # lines of a log


class Rate:
    """At most `most` in any `seconds`; the first one after a pause hears how many were left out."""

    def __init__(
        self, most: int = MOST, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most, self.seconds, self.clock = most, seconds, clock
        self.begun, self.taken, self.left_out = -seconds, 0, 0

    def take(self) -> int | None:
        """None: not now. Otherwise how many were left out since the last one."""
        now = self.clock()
        if now - self.begun >= self.seconds:
            self.begun, self.taken = now, 0
        if self.taken >= self.most:
            self.left_out += 1
            return None
        self.taken += 1
        missed, self.left_out = self.left_out, 0
        return missed


class FewRecords(logging.Filter):
    """A log that cannot be flooded."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = Rate()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it; the first one after others were left out says how many."""
        missed = self.rate.take()
        if missed:
            record.msg = f"{record.getMessage()} ({missed:,} more before it were not written)"
            record.args = ()
        return missed is not None


# For uvicorn: its errors and asyncio's, on standard error, and no line for each request.
LOG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"few": {"()": FewRecords}},
    "handlers": {
        "errors": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "filters": ["few"]}
    },
    "loggers": {
        name: {"handlers": ["errors"], "level": "ERROR", "propagate": False}
        for name in ("uvicorn", "asyncio")
    },
}
