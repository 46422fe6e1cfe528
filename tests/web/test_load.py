"""Two hundred clients for a minute: right answers, bounded waiting, flat memory."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time

import pytest

from factordiff.web.limits import Limits
from tests.web.serving import Served, ask, serve
from tests.web.stubs import copying, task

CLIENTS, SECONDS, WARM_UP = 200, 60.0, 20.0
QUEUE, COST, STEPS = 8, 0.002, 4
MALFORMED = 0.05
BAD = [b"{", b"[]", b'{"task": 1}', b"\xff\xfe", json.dumps({"task": task(), "seed": -1}).encode()]


def resident() -> int:
    """Kilobytes of memory that this process holds."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Client(threading.Thread):
    """Asks again and again; counts what came back and how long it took."""

    def __init__(self, number: int, served: Served, end: float) -> None:
        super().__init__(daemon=True)
        self.rng, self.served, self.end = random.Random(number), served, end
        self.statuses: dict[int, int] = {}
        self.waits: list[float] = []
        self.solves: list[float] = []  # what the worker itself took
        self.wrong: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        while time.monotonic() < self.end:
            try:
                self.once(connection)
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(repr(error))
                connection.close()
        connection.close()

    def once(self, connection: http.client.HTTPConnection) -> None:
        if self.rng.random() < MALFORMED:
            reply = ask(connection, "POST", "/api/v1/solve", self.rng.choice(BAD))
            if reply.status != 422:
                self.wrong.append(f"a malformed request got {reply.status}")
            return
        color = self.rng.randrange(10)
        body = {
            "task": task(side=5, color=color), "experts": ["even", "odd"], "detail": self.rng.random() < 0.5,
            "stream": self.rng.random() < 0.5, "reveal": {"rule": "confidence", "steps": STEPS},
        }  # fmt: skip
        begun = time.monotonic()
        reply = ask(connection, "POST", "/api/v1/solve", body)
        self.statuses[reply.status] = self.statuses.get(reply.status, 0) + 1
        if reply.status == 200:
            self.waits.append(time.monotonic() - begun)
            answer = reply.events[-1]
            self.solves.append(answer.get("seconds", 0.0))
            right = task(side=5, color=color)["test"][0]["input"]
            if answer["event"] != "answer" or answer["grid"] != right:
                self.wrong.append(f"color {color}: {answer}")
        else:
            time.sleep(self.rng.uniform(0.1, 0.5))  # as Retry-After asks, but less patient


@pytest.mark.slow
def test_two_hundred_clients() -> None:
    limits = Limits(queue=QUEUE, per_client=2 * CLIENTS)  # all of them have one address here
    with serve(copying(COST), limits) as served:
        begun = time.monotonic()
        clients = [Client(number, served, begun + SECONDS) for number in range(1, CLIENTS + 1)]
        for client in clients:
            client.start()
        time.sleep(WARM_UP)
        warm = resident()
        for client in clients:
            client.join(timeout=SECONDS + 30)
        after = resident()
    statuses = {
        status: sum(client.statuses.get(status, 0) for client in clients) for status in range(200, 600)
    }
    seen = {status: count for status, count in statuses.items() if count}
    wrong = [sentence for client in clients for sentence in client.wrong]
    waits = sorted(wait for client in clients for wait in client.waits)
    assert not wrong, wrong[:5]
    assert not served.faults
    assert set(seen) <= {200, 429, 503}, seen
    assert seen[200] > 100
    assert after < 1.05 * warm, (warm, after)
    # Whoever is accepted waits for those in the queue, the one that is computed, and itself; one second more
    # because 200 clients share this very process with the server.
    solves = sorted(seconds for client in clients for seconds in client.solves)
    p99_wait, p99_solve = waits[len(waits) * 99 // 100], solves[len(solves) * 99 // 100]
    assert p99_wait < (QUEUE + 2) * p99_solve + 1.0, (p99_wait, p99_solve)
