"""The open connections of a server: who says nothing for long, or longest when there are too many, is let go.

A connection is silent until its request's headers are there and again after its answer. Bytes that trickle in do not
make it less silent: headers that take for ever are the same as none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Connection(Protocol):
    """What is known of a connection: how to end it."""

    def hang_up(self) -> None:
        """End it now."""


class Connections:
    """Every open connection; at most `most`, none silent for more than `patience` seconds."""

    def __init__(self, most: int, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.patience, self.clock = most, patience, clock
        self.asking: set[Connection] = set()
        self.silent: dict[Connection, float] = {}  # since when; the longest silent comes first

    def __len__(self) -> int:
        return len(self.asking) + len(self.silent)

    def admit(self, connection: Connection) -> None:
        """A new one: if there are too many then, the longest silent goes, and that may be this one."""
        self.silent[connection] = self.clock()
        if len(self) > self.most:
            self._let_go(next(iter(self.silent)))

    def note(self, connection: Connection, asks: bool) -> None:
        """Whether it has a request under way."""
        if asks and self.silent.pop(connection, None) is not None:
            self.asking.add(connection)
        elif not asks and connection in self.asking:
            self.asking.remove(connection)
            self.silent[connection] = self.clock()

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        self.asking.discard(connection)
        self.silent.pop(connection, None)

    def sweep(self) -> None:
        """Let go of all that have been silent for too long."""
        now = self.clock()
        while self.silent:
            connection, since = next(iter(self.silent.items()))
            if now - since <= self.patience:
                return
            self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        self.forget(connection)
        connection.hang_up()


def watched(protocol: type[Any], connections: Connections) -> type[Any]:
    """Uvicorn's protocol for a connection, telling `connections` what happens to it."""

    class Watched(protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections.admit(self)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.note()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.note()

        def connection_lost(self, exc: Exception | None) -> None:
            connections.forget(self)
            super().connection_lost(exc)

        def note(self) -> None:
            connections.note(self, self.cycle is not None and not self.cycle.response_complete)

        def hang_up(self) -> None:
            self.transport.abort()

    return Watched
