"""Idle sockets and slow headers beside clients: whoever asks is answered, whoever says nothing is let go.

The server is a process of its own that may open few files: the silent would use them all up.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.web.serving import ask
from tests.web.stubs import task
from tests.web.test_load import ROOT

SILENCE = 2.0


@dataclass
class Counts:
    """How many of each, and for how long."""

    files: int
    idle: int
    slow: int
    clients: int
    seconds: float


FEW = Counts(files=128, idle=200, slow=20, clients=10, seconds=4.0)
MANY = Counts(files=1_024, idle=1_100, slow=100, clients=100, seconds=30.0)


@dataclass
class Running:
    process: subprocess.Popen[str]
    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def files(self) -> int:
        """How many files the server has open."""
        place = Path(f"/proc/{self.process.pid}/fd")
        return len(list(place.iterdir())) if place.exists() else 0

    def computed(self) -> float:
        """Seconds of a processor that the server has used."""
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def crowd_server(files: int, queue: int = 8) -> Iterator[Running]:
    """A server that may open so many files; whatever is done to it, it does not write much about it."""
    command = [
        sys.executable,
        "-m",
        "tests.web.stub_server",
        "0.002",
        str(queue),
        "400",
        str(files),
        str(SILENCE),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        running = Running(process, int(process.stdout.readline()))
        yield running
        said, _ = process.communicate(timeout=30)
        assert len(said) < 10_000, said[:2_000]
    finally:
        process.kill()
        process.wait()


class Client(threading.Thread):
    """Opens the page and asks for a solve, again and again, on a new connection each time."""

    def __init__(self, port: int, end: float) -> None:
        super().__init__(daemon=True)
        self.port, self.end = port, end
        self.statuses: Counter[int] = Counter()
        self.trips: list[float] = []
        self.wrong: list[str] = []
        self.again = 0

    def run(self) -> None:
        while time.monotonic() < self.end:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                begun = time.monotonic()
                page = ask(connection, "GET", "/")
                self.trips.append(time.monotonic() - begun)
                body = {"task": task(), "stream": False, "reveal": "confidence:2"}
                reply = ask(connection, "POST", "/api/v1/solve", body)
                self.statuses[reply.status] += 1
                if page.status != 200 or (
                    reply.status == 200 and reply.json["grid"] != task()["test"][0]["input"]
                ):
                    self.wrong.append(f"{page.status} {reply.body[:200]!r}")
            except (OSError, http.client.HTTPException):
                self.again += (
                    1  # it was slower to speak than many others to come, and tries again as browsers do
                )
            finally:
                connection.close()
            time.sleep(0.05)


def keep_silent(server: Running, count: int, opened: list[socket.socket]) -> None:
    for _ in range(count):
        with contextlib.suppress(OSError):
            opened.append(server.connect())


def trickle(server: Running, count: int, end: float, closed: list[float]) -> None:
    """Headers that never end, a byte at a time; when a connection is closed, how long that took."""
    begun = time.monotonic()
    lines = {server.connect(): b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " for _ in range(count)}
    while lines and time.monotonic() < end:
        for line, more in list(lines.items()):
            with contextlib.suppress(OSError):
                line.sendall(more)
            if _closed(line):
                closed.append(time.monotonic() - begun)
                del lines[line]
                line.close()
            else:
                lines[line] = b"a"
        time.sleep(0.1)


def ask_together(server: Running, count: int, end: float) -> list[Client]:
    clients = [Client(server.port, end) for _ in range(count)]
    for client in clients:
        client.start()
    return clients


def page_trip(clients: list[Client]) -> float:
    """How long the page usually took."""
    for client in clients:
        client.join(timeout=60)
    return statistics.median(trip for client in clients for trip in client.trips)


def run_crowd(server: Running, counts: Counts) -> None:
    alone = page_trip(ask_together(server, counts.clients, time.monotonic() + counts.seconds / 4))
    opened: list[socket.socket] = []
    closed: list[float] = []
    files = []
    end = time.monotonic() + counts.seconds
    crowd = [
        threading.Thread(target=keep_silent, args=(server, counts.idle, opened), daemon=True),
        threading.Thread(target=trickle, args=(server, counts.slow, end, closed), daemon=True),
    ]
    for thread in crowd:
        thread.start()
    clients = ask_together(server, counts.clients, end)
    while time.monotonic() < end:
        files.append(server.files())
        time.sleep(0.2)
    crowded = page_trip(clients)
    for thread in crowd:
        thread.join(timeout=60)
    silent = sum(_closed(one) for one in opened)
    for one in opened:
        one.close()
    asked = sum(len(client.trips) for client in clients)
    statuses = sum((client.statuses for client in clients), Counter())
    wrong = [sentence for client in clients for sentence in client.wrong]
    print(
        f"\n{len(opened)} idle, {silent} closed; {len(closed)} slow closed, the last after {max(closed):.1f} s; "
        f"{statuses}; the page in {crowded:.3f} s, {alone:.3f} s before they came; files {max(files)}"
    )
    assert not wrong, (len(wrong), wrong[:3])
    assert set(statuses) <= {200, 503}, statuses
    assert statuses[200] > 0
    assert sum(client.again for client in clients) <= 0.1 * asked
    assert silent == len(opened) == counts.idle  # nobody may say nothing for as long as this took
    assert len(closed) == counts.slow
    assert max(files) < counts.files
    # A page waits for others' pages, as it did before, never for the silent to go.
    assert crowded < 3 * alone + SILENCE / 4


def _closed(one: socket.socket) -> bool:
    """Whether the other end has hung up."""
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        one.setblocking(True)


@pytest.fixture(scope="module")
def small_server() -> Iterator[Running]:
    with crowd_server(FEW.files) as running:
        yield running


def test_a_crowd_of_the_silent_does_not_starve_those_who_ask(small_server: Running) -> None:
    run_crowd(small_server, FEW)


@pytest.mark.slow
def test_eleven_hundred_silent_beside_a_hundred_clients() -> None:
    with crowd_server(MANY.files) as running:
        run_crowd(running, MANY)


def pairs(count: int) -> bytes:
    one = {"input": [[0]], "output": [[0]]}
    return json.dumps({"task": {"train": [one] * count, "test": [one]}}, separators=(",", ":")).encode()


def test_bodies_of_many_pairs_cost_next_to_nothing(small_server: Running) -> None:
    """Six thousand pairs, read one by one, would keep everybody else waiting for a tenth of a second."""
    connection = http.client.HTTPConnection("127.0.0.1", small_server.port, timeout=30)
    body, count = pairs(6_000), 50
    assert len(body) < 200_000
    before = small_server.computed()
    for _ in range(count):
        reply = ask(connection, "POST", "/api/v1/solve", body)
        assert reply.status == 422
        assert reply.json["reason"] == "body: expected at most 100 objects, among them the pairs"
    assert (small_server.computed() - before) / count < 0.02
    assert ask(connection, "POST", "/api/v1/solve", pairs(32_225)).status == 413
    connection.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"task": {"train": [' + "[]," * 65_000 + '[]], "test": []}}', "body: expected at most 2000 lists"),
        ('{"task": {}, "beta": [' + "[]," * 65_000 + "[]]}", "body: expected at most 2000 lists"),
        ('{"experts": [' + "1," * 98_000 + "1]}", "experts, 0: expected a valid string, got 1"),
        ('{"task": {"train": [' + "1," * 98_000 + '1], "test": []}}', "task, train, 0: expected an object"),
    ],
    ids=["lists", "lists of an option", "numbers", "pairs"],
)
def test_bodies_of_many_things_cost_next_to_nothing(small_server: Running, body: str, said: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", small_server.port, timeout=30)
    assert len(body) < 200_000
    before, count = small_server.computed(), 20
    for _ in range(count):
        reply = ask(connection, "POST", "/api/v1/solve", body.encode())
        assert reply.status == 422
        assert reply.json["reason"].startswith(said)
    assert (small_server.computed() - before) / count < 0.06  # a body of so many faults once took 0.33 s
    connection.close()
