"""The server over real connections: what it answers, what it refuses and with which status, who frees what."""

from __future__ import annotations

import http.client
import json
import socket
import time

import pytest

from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry, RegisteredExpert
from tests.web.serving import Served, serve, until
from tests.web.stubs import Faulty, Gate, copying, task

HEADERS = ("content-security-policy", "x-content-type-options", "referrer-policy")


def test_about_says_what_there_is(served: Served) -> None:
    about = served.ask("GET", "/api/v1/about").json
    assert [expert["name"] for expert in about["experts"]] == ["even", "odd", "where"]
    assert about["version"] == 1
    routing = next(method for method in about["methods"] if method["name"] == "routing")
    assert [option["name"] for option in routing["options"]] == ["temperatures", "factors"]
    assert about["teams"] == []  # the shipped teams are of other experts
    assert about["limits"]["particles"] == 16


def test_a_method_that_does_not_fit_says_why(served: Served) -> None:
    fits = served.ask("GET", "/api/v1/methods?experts=even,odd").json["methods"]
    assert fits["routing"] is None
    assert "takes one expert" in fits["single"]
    assert "trained on occupancy" in fits["views"]
    assert served.ask("GET", "/api/v1/methods?experts=where,odd").json["methods"]["views"] is None
    reply = served.ask("GET", "/api/v1/methods?experts=nobody")
    assert reply.status == 404
    assert "expected some of even, odd, where" in reply.json["reason"]


def test_other_experts_have_no_stories(served: Served) -> None:
    assert served.ask("GET", "/api/v1/stories").json == {"version": 1, "known_tasks": 120, "stories": []}


def test_there_are_120_tasks_and_each_can_be_had(served: Served) -> None:
    tasks = served.ask("GET", "/api/v1/tasks").json["tasks"]
    assert len(tasks) == 120
    last = tasks[-1]["id"]
    for query in ("", "?source=rearc&number=199", "?source=published&number=0"):
        found = served.ask("GET", f"/api/v1/tasks/{last}{query}").json["task"]
        assert found["train"]
        assert found["test"][0]["output"]


def test_the_library_gives_the_fixed_test_queries(served: Served) -> None:
    from factordiff.arc.dataset import Dataset

    queries = Dataset.load().evaluation("test", 3 * 120)
    index = 2 * 120 + 7
    found = served.ask("GET", f"/api/v1/tasks/{queries.task_ids[index]}?number=2").json["task"]
    given, right = queries.query(index)
    assert found["test"] == [{"input": given.tolist(), "output": right.tolist()}]
    assert [pair["input"] for pair in found["train"]] == [
        grid.tolist() for grid, _ in queries.demonstrations(index)
    ]


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/api/v1/tasks/zzzzzzzz", 404, "not one of the 120 tasks"),
        ("/api/v1/tasks/0520fde7?source=web", 404, "expected rearc or published"),
        ("/api/v1/tasks/0520fde7?number=200", 404, "200 rearc tests"),
        ("/api/v1/tasks/0520fde7?number=x", 422, "number"),
        ("/api/v1/nothing", 404, "nothing at this address"),
        ("/../../etc/passwd", 404, "nothing at this address"),
        ("/docs", 404, "nothing at this address"),
        ("/api/v1/solve", 405, "does not take this method"),
    ],
)
def test_wrong_addresses_get_a_sentence(served: Served, path: str, status: int, word: str) -> None:
    reply = served.ask("GET", path)
    assert reply.status == status
    assert word in reply.json["reason"]
    assert all(name in reply.headers for name in HEADERS)


def test_the_page_comes_with_a_strict_policy(served: Served) -> None:
    reply = served.ask("GET", "/")
    assert reply.status == 200
    assert b"FactorDiff" in reply.body
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("'", "")


def test_a_stream_is_start_steps_answer(served: Served) -> None:
    reply = served.solve(task=task())
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/x-ndjson"
    kinds = [event["event"] for event in reply.events]
    assert kinds[0] == "start"
    assert kinds[-1] == "answer"
    assert set(kinds[1:-1]) == {"step"}
    assert reply.events[-1]["right"] is True


def test_without_a_stream_only_the_answer_comes(served: Served) -> None:
    streamed, plain = served.solve(task=task()), served.solve(task=task(), stream=False)
    assert plain.headers["content-type"] == "application/json"
    assert plain.json["canvas"] == streamed.events[-1]["canvas"]


def test_the_schema_and_the_openapi_document_agree(served: Served) -> None:
    schema = served.ask("GET", "/api/v1/schema").json
    document = served.ask("GET", "/api/v1/openapi.json").json
    body = document["paths"]["/api/v1/solve"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == schema["solve"]["request"]
    events = served.solve(task=task()).events
    for event in events:
        assert event.keys() == schema["solve"]["events"][event["event"]]["properties"].keys()


def test_a_body_too_large_is_413_whether_it_says_so_or_not(served: Served) -> None:
    large = b'{"task": "' + b"x" * 1_000_000 + b'"}'
    opened = socket.create_connection(("127.0.0.1", served.port), timeout=10)
    with opened:  # only the head: the refusal does not wait for the body
        opened.sendall(
            b"POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(large)
        )
        assert b" 413 " in opened.recv(4096)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    pieces = (large[start : start + 65536] for start in range(0, len(large), 65536))
    connection.request(
        "POST", "/api/v1/solve", pieces, {"content-type": "application/json"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("body", "kind", "status", "word"),
    [
        (b"{}", "text/plain", 415, "expected application/json"),
        (b"{", "application/json", 422, "invalid JSON"),
        (b"{}", "application/json; charset=utf-8", 422, "task: it is missing"),
    ],
)
def test_bodies_of_another_kind(served: Served, body: bytes, kind: str, status: int, word: str) -> None:
    reply = served.ask("POST", "/api/v1/solve", body, content_type=kind)
    assert reply.status == status
    assert word in reply.json["reason"]


def test_what_does_not_fit_together_is_422(served: Served) -> None:
    reply = served.solve(task=task(), method="views", experts=["even", "odd"])
    assert reply.status == 422
    assert "occupancy" in reply.json["reason"]
    assert served.solve(task=task(), method="single", experts=["even", "odd"]).status == 422


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "", "127.0.0.1.evil.example"])
def test_another_host_is_turned_away(served: Served, host: str) -> None:
    assert served.ask("GET", "/", host=host).status == 400


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "[::1]:8000", "LOCALHOST:1"])
def test_this_machine_is_not(served: Served, host: str) -> None:
    assert served.ask("GET", "/", host=host).status == 200


def test_a_body_that_does_not_come_is_408() -> None:
    with serve(copying(), Limits(upload=0.2)) as server:
        opened = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        with opened:
            opened.sendall(
                b"POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            assert b" 408 " in opened.recv(4096)


def test_too_many_of_one_client_is_429_and_a_full_queue_503() -> None:
    gate = Gate()
    registry = ExpertRegistry([RegisteredExpert("gate", gate)])
    with serve(registry, Limits(per_client=2, queue=8)) as server:
        first = server.open_solve(task=task())
        assert gate.arrived.acquire(timeout=10)
        second = server.open_solve(task=task())
        until(lambda: len(server.worker.waiting) == 1)
        reply = server.solve(task=task())
        assert reply.status == 429
        assert "2 requests under way" in reply.json["reason"]
        assert reply.headers["retry-after"]
        gate.open.release(1000)
        first.close()
        second.close()
    gate = Gate()
    with serve(ExpertRegistry([RegisteredExpert("gate", gate)]), Limits(per_client=20, queue=1)) as server:
        first = server.open_solve(task=task())
        assert gate.arrived.acquire(timeout=10)
        second = server.open_solve(task=task())
        until(lambda: len(server.worker.waiting) == 1)
        reply = server.solve(task=task())
        assert reply.status == 503
        assert "busy" in reply.json["reason"]
        gate.open.release(1000)
        first.close()
        second.close()


def test_a_client_that_leaves_frees_its_work_within_one_pass() -> None:
    gate = Gate()
    with serve(ExpertRegistry([RegisteredExpert("gate", gate)])) as server:
        running = server.open_solve(task=task(), reveal="exact")
        assert gate.arrived.acquire(timeout=10)
        waiting = server.open_solve(task=task())
        until(lambda: len(server.worker.waiting) == 1)
        waiting.close()  # one that waits leaves the queue although the worker is held
        until(lambda: len(server.worker.waiting) == 0)
        job = server.worker.running
        running.close()
        until(lambda: job.cancelled)
        gate.open.release(1000)
        until(lambda: server.worker.running is None)
        assert gate.passes == 1
        assert server.solve(task=task(), stream=False).json["right"]


def test_a_turn_that_does_not_come_in_time_is_503() -> None:
    gate = Gate()
    with serve(ExpertRegistry([RegisteredExpert("gate", gate)])) as server:
        running = server.open_solve(task=task())
        assert gate.arrived.acquire(timeout=10)
        begun = time.monotonic()
        reply = server.solve(task=task(), deadline=0.2)
        assert time.monotonic() - begun < 3
        assert reply.status == 503
        assert "no turn came within 0.2 seconds" in reply.json["reason"]
        assert len(server.worker.waiting) == 0
        gate.open.release(1000)
        running.close()


def test_a_deadline_is_kept_while_computing() -> None:
    with serve(copying(cost=0.02)) as server:
        plain = server.solve(task=task(), reveal="exact", deadline=0.3, stream=False)
        assert plain.status == 503
        streamed = server.solve(task=task(), reveal="exact", deadline=0.3)
        assert streamed.status == 200  # it had begun
        assert streamed.events[-1]["event"] == "error"
        assert streamed.events[-1]["status"] == 503


def test_a_fault_never_reaches_the_client() -> None:
    with serve(ExpertRegistry([RegisteredExpert("faulty", Faulty())])) as server:
        reply = server.solve(task=task(), stream=False, reveal="exact")
        assert reply.status == 500
        assert b"secret" not in reply.body
        assert b"Traceback" not in reply.body
        assert "operator" in reply.json["reason"]
        assert isinstance(server.faults[0], ZeroDivisionError)


def test_health_tells_how_busy_it_is(served: Served) -> None:
    assert served.ask("GET", "/api/v1/health").json == {"version": 1, "waiting": 0, "busy": False}


def test_random_answers_do_not_depend_on_who_asks_when(served: Served) -> None:
    bodies = [json.dumps({"task": task(), "method": "fkc", "seed": seed}) for seed in (1, 2, 1)]
    canvases = [served.ask("POST", "/api/v1/solve", body.encode()).events[-1]["canvas"] for body in bodies]
    assert canvases[0] == canvases[2]
    assert canvases[0] != canvases[1]
