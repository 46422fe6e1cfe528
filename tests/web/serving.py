"""A real server on a free port, and the plainest possible client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from factordiff.web.library import Library
from factordiff.web.limits import Limits
from factordiff.web.listening import listen
from factordiff.web.middleware import LOOPBACK
from factordiff.web.registry import ExpertRegistry
from factordiff.web.running import make_server
from factordiff.web.server import build_server
from factordiff.web.worker import Worker

LIBRARY = Library()


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class Served:
    port: int
    worker: Worker
    faults: list[Exception] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request on a connection of its own; anything but bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def solve(self, **body: Any) -> Reply:
        return self.ask("POST", "/api/v1/solve", body)

    def open_solve(self, **body: Any) -> socket.socket:
        """Send a solve and return the connection without reading the answer."""
        text = json.dumps(body).encode()
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        head = (
            "POST /api/v1/solve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n"
        )
        opened.sendall(head.encode() + text)
        return opened


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    if body is not None:
        sent.setdefault("content-type", "application/json")
    connection.request(method, path, body, sent)
    answer = connection.getresponse()
    return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def until(condition, seconds: float = 10.0) -> None:
    """Wait for something that other threads bring about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def serve(registry: ExpertRegistry, limits: Limits | None = None) -> Iterator[Served]:
    faults: list[Exception] = []
    application = build_server(registry, limits, hosts=LOOPBACK, library=LIBRARY, on_fault=faults.append)
    listening = listen("127.0.0.1", 0)
    server = make_server(application, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield Served(listening.getsockname()[1], application.application.state.worker, faults)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
        assert not thread.is_alive()
