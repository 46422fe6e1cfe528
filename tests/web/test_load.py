"""Two hundred clients for a minute: right answers, bounded waiting, flat memory.

The server is a process of its own, so that its memory and its speed are not those of the clients. No bound is a
number of seconds: what must hold follows from what a solve took under this very load, on whatever machine it is.
"""

from __future__ import annotations

import bisect
import http.client
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.web.serving import ask
from tests.web.stubs import task

CLIENTS, SECONDS, WARM_UP = 200, 60.0, 20.0
QUEUE, COST, STEPS = 8, 0.002, 4
MALFORMED = 0.05
BAD = [b"{", b"[]", b'{"task": 1}', b"\xff\xfe", json.dumps({"task": task(), "seed": -1}).encode()]
ROOT = Path(__file__).parents[2]


@contextmanager
def serving() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The server's process and port; whatever it says besides is a fault."""
    command = [sys.executable, "-m", "tests.web.stub_server", str(COST), str(QUEUE), str(2 * CLIENTS)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        said, _ = process.communicate(timeout=30)
        assert not said, said[:2000]
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def resident(process: subprocess.Popen[str]) -> int:
    """Kilobytes of memory that a process holds."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Answered(NamedTuple):
    """A request that was accepted: when it was sent, when its answer was there, what the worker itself took."""

    begun: float
    ended: float
    solve: float

    @property
    def wait(self) -> float:
        return self.ended - self.begun


class Client(threading.Thread):
    """Asks again and again; counts what came back and how long it took."""

    def __init__(self, number: int, port: int, end: float) -> None:
        super().__init__(daemon=True)
        self.rng, self.port, self.end = random.Random(number), port, end
        self.statuses: Counter[int] = Counter()
        self.malformed: Counter[int] = Counter()
        self.answered: list[Answered] = []
        self.trips: list[float] = []  # there and back, without any work in between
        self.wrong: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while time.monotonic() < self.end:
            try:
                self.once(connection)
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(repr(error))
                connection.close()
        connection.close()

    def once(self, connection: http.client.HTTPConnection) -> None:
        if self.rng.random() < MALFORMED:
            begun = time.monotonic()
            reply = ask(connection, "POST", "/api/v1/solve", self.rng.choice(BAD))
            self.trips.append(time.monotonic() - begun)
            self.malformed[reply.status] += 1
            return
        color = self.rng.randrange(10)
        body = {
            "task": task(side=5, color=color), "experts": ["even", "odd"], "detail": self.rng.random() < 0.5,
            "stream": self.rng.random() < 0.5, "reveal": f"confidence:{STEPS}",
        }  # fmt: skip
        begun = time.monotonic()
        reply = ask(connection, "POST", "/api/v1/solve", body)
        self.statuses[reply.status] += 1
        if reply.status == 200:
            ended = time.monotonic()
            answer = reply.events[-1]
            self.answered.append(Answered(begun, ended, answer.get("seconds", 0.0)))
            right = task(side=5, color=color)["test"][0]["input"]
            if answer["event"] != "answer" or answer["grid"] != right:
                self.wrong.append(f"color {color}: {answer}")
        else:
            time.sleep(self.rng.uniform(0.1, 0.5))  # as Retry-After asks, but less patient


def p99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


def excesses(answered: list[Answered], usual: float) -> list[float]:
    """How much longer each took than a full queue: QUEUE waiting (itself among them), one computed, one to spare.

    A solve counts as the `usual` one or, where the machine stopped for a while, as those that ended meanwhile took.
    """
    in_order = sorted(answered, key=lambda one: one.ended)
    ends = [one.ended for one in in_order]
    found = []
    for place, one in enumerate(in_order):
        meanwhile = in_order[bisect.bisect(ends, one.begun) : place + 1]
        solve = max(usual, sum(other.solve for other in meanwhile) / len(meanwhile))
        found.append(one.wait - (QUEUE + 2) * solve)
    return found


@pytest.mark.slow
def test_two_hundred_clients() -> None:
    memory = []
    with serving() as (server, port):
        begun = time.monotonic()
        clients = [Client(number, port, begun + SECONDS) for number in range(1, CLIENTS + 1)]
        for client in clients:
            client.start()
        time.sleep(WARM_UP)
        while time.monotonic() < begun + SECONDS:
            memory.append(resident(server))
            time.sleep(1.0)
        for client in clients:
            client.join(timeout=60)
        memory.append(resident(server))
    wrong = [sentence for client in clients for sentence in client.wrong]
    statuses = sum((client.statuses for client in clients), Counter())
    malformed = sum((client.malformed for client in clients), Counter())
    answered = [one for client in clients for one in client.answered]
    trip = p99([seconds for client in clients for seconds in client.trips])
    solves = [one.solve for one in answered]
    excess = p99(excesses(answered, usual=p99(solves)))
    share = malformed.total() / (malformed.total() + statuses.total())
    print(
        f"\n{statuses}, malformed {malformed}; solve mean {sum(solves) / len(solves):.4f} s, p99 {p99(solves):.4f} s; "
        f"wait p99 {p99([one.wait for one in answered]):.4f} s, {excess:.4f} s above a full queue; trip {trip:.4f} s; "
        f"worker busy {sum(solves) / SECONDS:.2f}; memory {memory[0]} kB, then at most {max(memory)}"
    )
    assert not wrong, wrong[:5]
    assert set(statuses) <= {200, 503}, statuses  # they have one address, and its limit is above their number
    assert set(malformed) == {422}, malformed
    assert 0.5 * MALFORMED < share < 2 * MALFORMED
    # There is always somebody who waits, so the worker is computing most of the time.
    assert sum(solves) > 0.5 * SECONDS, (len(solves), sum(solves))
    assert max(memory) < 1.05 * memory[0], memory
    # Whoever is accepted waits for a full queue at most, and for the way there and back.
    assert excess < trip, (excess, trip)
