"""One worker: a bounded queue, places that are given back, jobs that stop within a pass."""

from __future__ import annotations

import json
import threading
import time
from functools import partial

import pytest

from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry, RegisteredExpert
from factordiff.web.request import read_request
from factordiff.web.run import perform, prepare
from factordiff.web.worker import Full, Job, Worker
from tests.web.serving import until
from tests.web.stubs import Faulty, Gate, copying, task


def job_for(registry: ExpertRegistry, deadline: float = 30.0, **changes: object) -> tuple[Job, list[dict]]:
    request = read_request(json.dumps({"task": task(), **changes}).encode(), registry.names(), Limits())
    events: list[dict] = []
    work = partial(perform, prepare(request, registry))
    return Job(work, deadline, lambda line: events.append(line and json.loads(line))), events


def test_jobs_are_computed_in_order() -> None:
    worker = Worker(4)
    jobs = [job_for(copying(), seed=seed) for seed in range(3)]
    for job, _ in jobs:
        worker.submit(job)
    until(lambda: all(events and events[-1] is None for _, events in jobs))
    assert [events[-2]["right"] for _, events in jobs] == [True] * 3
    worker.close()


def test_the_queue_is_bounded_and_a_place_comes_back_at_once() -> None:
    gate = Gate()
    registry = ExpertRegistry([RegisteredExpert("gate", gate)])
    worker = Worker(2)
    running, _ = job_for(registry)
    worker.submit(running)
    assert gate.arrived.acquire(timeout=10)
    waiting = [job_for(registry)[0] for _ in range(2)]
    for job in waiting:
        worker.submit(job)
    with pytest.raises(Full, match="2 requests are waiting"):
        worker.submit(job_for(registry)[0])
    worker.cancel(waiting[0])
    worker.submit(job_for(registry)[0])
    worker.cancel(running)
    gate.open.release(1000)
    worker.close()


def test_a_job_stops_before_its_next_pass() -> None:
    gate = Gate()
    worker = Worker(1)
    job, events = job_for(ExpertRegistry([RegisteredExpert("gate", gate)]), reveal="exact")
    worker.submit(job)
    for _ in range(3):
        assert gate.arrived.acquire(timeout=10)
        gate.open.release()
    assert gate.arrived.acquire(timeout=10)
    worker.cancel(job)
    gate.open.release(1000)
    until(lambda: worker.running is None)
    assert gate.passes == 4  # the pass under way when the client left was the last
    assert not any(event and event["event"] == "answer" for event in events)
    worker.close()


def test_a_job_stops_between_the_passes_of_attempt_2() -> None:
    gate, other = Gate(), Gate()
    worker = Worker(1)
    registry = ExpertRegistry([RegisteredExpert("gate", gate), RegisteredExpert("other", other)])
    job, events = job_for(registry, reveal="confidence:1", attempt=2)
    worker.submit(job)
    for one in (gate, other):  # attempt 1 once more, in one pass
        assert one.arrived.acquire(timeout=10)
        one.open.release()
    assert gate.arrived.acquire(timeout=10)  # the reflected task
    worker.cancel(job)
    gate.open.release(1000)
    other.open.release(1000)
    until(lambda: worker.running is None)
    assert (gate.passes, other.passes) == (2, 1)
    assert not any(event and event["event"] == "second" for event in events)
    worker.close()


def test_a_deadline_ends_a_run_with_a_sentence() -> None:
    worker = Worker(1)
    job, events = job_for(copying(cost=0.05), deadline=0.3, reveal="exact")
    begun = time.monotonic()
    worker.submit(job)
    until(lambda: bool(events) and events[-1] is None)
    assert time.monotonic() - begun < 2.0
    assert events[-2]["status"] == 503
    assert "not there within 0.3 seconds" in events[-2]["reason"]
    worker.close()


def test_a_fault_is_told_to_the_operator_only() -> None:
    faults: list[Exception] = []
    worker = Worker(1, faults.append)
    job, events = job_for(ExpertRegistry([RegisteredExpert("faulty", Faulty())]), reveal="exact")
    worker.submit(job)
    until(lambda: bool(events) and events[-1] is None)
    assert events[-2]["status"] == 500
    assert "secret" not in json.dumps(events)
    assert isinstance(faults[0], ZeroDivisionError)
    healthy, others = job_for(copying())
    worker.submit(healthy)
    until(lambda: bool(others) and others[-1] is None)
    assert others[-2]["right"]
    worker.close()


def test_closing_refuses_those_who_wait() -> None:
    gate = Gate()
    registry = ExpertRegistry([RegisteredExpert("gate", gate)])
    worker = Worker(2)
    running, _ = job_for(registry)
    waiting, events = job_for(registry)
    worker.submit(running)
    assert gate.arrived.acquire(timeout=10)
    worker.submit(waiting)
    closing = threading.Thread(target=worker.close)
    closing.start()
    until(lambda: worker.closed)
    gate.open.release(1000)
    closing.join(timeout=10)
    assert not worker.thread.is_alive()
    assert events == [{"event": "error", "status": 503, "reason": "the server is stopping"}, None]
    with pytest.raises(Full, match="stopping"):
        worker.submit(job_for(registry)[0])
