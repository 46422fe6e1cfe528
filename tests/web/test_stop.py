"""A server that stops: every client that waits hears so in one sentence, whatever it waits for."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from collections import Counter

import pytest

from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry, RegisteredExpert
from tests.web.serving import serve, until
from tests.web.stubs import Gate, task
from tests.web.test_crowd import Running, crowd_server

STOPPING = "the server is stopping"
HEAD = "POST /api/v1/solve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


def answer_of(opened: socket.socket) -> tuple[int, list[dict]]:
    """The status and the JSON lines of what came back, once the other end has hung up."""
    reply = http.client.HTTPResponse(opened)
    reply.begin()
    lines = [json.loads(line) for line in reply.read().splitlines()]
    opened.close()
    return reply.status, lines


def test_everybody_who_waits_hears_it_at_once() -> None:
    """One is computed and in the middle of a pass, others wait for their turn, others are still sending."""
    gate = Gate()
    with serve(ExpertRegistry([RegisteredExpert("gate", gate)]), Limits(queue=6, per_client=20)) as served:
        running = served.open_solve(task=task(), stream=True, reveal="exact")
        for _ in range(2):  # its first passes are over
            assert gate.arrived.acquire(timeout=10)
            gate.open.release()
        assert gate.arrived.acquire(timeout=10)
        waiting = [served.open_solve(task=task(), stream=number % 2 == 0) for number in range(4)]
        until(lambda: len(served.worker.waiting) == 4)
        sending = []
        for part in (b"", b'{"task": '):
            one = socket.create_connection(("127.0.0.1", served.port), timeout=30)
            one.sendall(HEAD.format(1_000).encode() + part)
            sending.append(one)
        time.sleep(0.3)  # until the server has their headers
        answers: list[tuple[int, list[dict]]] = []

        def listen_to_all() -> None:
            answers.extend(answer_of(one) for one in [running, *waiting, *sending])
            gate.open.release(1_000)  # only now the pass may end: nobody had to wait for that

        listening = threading.Thread(target=listen_to_all, daemon=True)
        listening.start()
    listening.join(timeout=30)
    (status, events), *others = answers
    assert status == 200
    assert events[0]["event"] == "start"
    assert events[-1] == {"event": "error", "status": 503, "reason": STOPPING}
    assert len(others) == 6
    for status, lines in others:
        assert (status, [line["reason"] for line in lines]) == (503, [STOPPING])


def ask_for_ever(server: Running, number: int, ends: list[str]) -> None:
    """Ask again and again until the server is gone; note how it ended."""
    while True:
        try:
            opened = server.connect()
        except ConnectionRefusedError:
            ends.append("refused")  # it no longer listens
            return
        try:
            body = {
                "task": task(side=5, color=number % 10),
                "stream": number % 2 == 0,
                "reveal": "confidence:25",
            }
            text = json.dumps(body).encode()
            opened.sendall(HEAD.format(len(text)).encode() + text)
            reply = http.client.HTTPResponse(opened)
            reply.begin()
            last = json.loads(reply.read().splitlines()[-1])
        except ConnectionResetError:
            ends.append("reset")  # it knocked when nobody was let in any more
            return
        except (OSError, ValueError, IndexError, http.client.HTTPException) as error:
            ends.append(repr(error))
            return
        finally:
            opened.close()
        if last.get("reason") == STOPPING:
            ends.append(f"{reply.status} {STOPPING}")
            return
        if reply.status == 503:
            time.sleep(0.05)
        elif (reply.status, last.get("event")) != (200, "answer"):
            ends.append(f"{reply.status} {last}")
            return


def stop_under_load(kind: signal.Signals, clients: int, seconds: float) -> None:
    ends: list[str] = []
    with crowd_server(1_024, queue=clients) as server:
        asking = [
            threading.Thread(target=ask_for_ever, args=(server, number, ends), daemon=True)
            for number in range(clients)
        ]
        for thread in asking:
            thread.start()
        time.sleep(seconds)
        server.process.send_signal(kind)
        for thread in asking:
            thread.join(timeout=30)
        server.process.wait(timeout=30)
    counts = Counter(ends)
    print(f"\n{kind.name}: {counts}")
    assert counts.total() == clients
    told = counts[f"503 {STOPPING}"] + counts[f"200 {STOPPING}"]  # the latter: whose stream had begun
    # Who was let in hears it; who had just come, or come again, finds the door closed.
    assert counts.keys() <= {f"503 {STOPPING}", f"200 {STOPPING}", "refused", "reset"}, counts
    assert told >= 0.8 * clients, counts
    assert counts["200 " + STOPPING] <= 1


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_stop_under_load(kind: signal.Signals) -> None:
    stop_under_load(kind, clients=12, seconds=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_hundred_clients_hear_that_it_stops(kind: signal.Signals) -> None:
    stop_under_load(kind, clients=100, seconds=5.0)
