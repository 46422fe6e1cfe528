"""How long a command may take: ten seconds, apart from work that may rightly take longer, which is stopped.

Work is what asks experts, trains or fits. After a moment of it comes what Ctrl-C sends, in between two steps, where
it can break nothing that Python itself has under way, such as an import.
"""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SECONDS = 10  # without those in which other processes had the processor
AT_MOST = 60  # of the clock, whatever else runs
# A step of any work, wherever it is done.
STEPS = (
    "factordiff.experts.forward.Forward.__call__",
    "factordiff.engine.expert_batch.ExpertBatch.__call__",
    "factordiff.engine.fast_network.FastNetwork.log_probs",
    "factordiff.networks.network.Network.log_probs",
    "factordiff.training.step.TrainingStep.__call__",
    "factordiff.fitting.router_fit._adam",
    "factordiff.arc.build.verify._compare",
)


class Hanging(BaseException):
    """It took too long."""


class Work:
    """The work of one command after another, each of which is stopped after a moment."""

    def __init__(self, moment: float) -> None:
        self.moment = moment
        self.begun: float | None = None
        self.stopped = False

    def forget(self) -> None:
        """The next command begins."""
        self.begun, self.stopped = None, False

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Look at the clock at every step."""
        for place in STEPS:
            module, _, name = place.rpartition(".")
            patch.setattr(place, self._watched(_found(module, name)))

    def _watched(self, step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def watched(*given: Any, **named: Any) -> Any:
            now = time.process_time()
            self.begun = now if self.begun is None else self.begun
            if now - self.begun > self.moment and not self.stopped:
                self.stopped = True
                signal.raise_signal(signal.SIGINT)
            return step(*given, **named)

        return watched


def _found(module: str, name: str) -> Any:
    import importlib

    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_found(*module.rsplit(".", 1)), name)


def kept_waiting() -> float:
    """The seconds for which this thread could have run, and others did."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


@contextmanager
def time_limit() -> Iterator[None]:
    """Ten seconds for what is done inside, and a Ctrl-C that is heard, even if the tests run in the background."""
    begun, waited = time.monotonic(), kept_waiting()

    def look(*_: Any) -> None:
        passed = time.monotonic() - begun
        if passed > AT_MOST or passed - (kept_waiting() - waited) > SECONDS:
            raise Hanging

    ours = {signal.SIGALRM: look, signal.SIGINT: signal.default_int_handler}
    before = {kind: signal.signal(kind, handler) for kind, handler in ours.items()}
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        yield
        look()  # a step of C lets nobody in before it ends
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for kind, handler in before.items():
            signal.signal(kind, handler)
