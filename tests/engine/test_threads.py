"""Threads with rows of their own: who may be asked so, what they leave behind, and how they end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import Routing
from factordiff.engine import threads
from factordiff.engine.auto import AutoEngine
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.samples import Samples
from tests.engine.test_engine import TOLD, Shared, differences
from tests.networks.small_networks import condition, small
from tests.toy import empty

ITEMS = 24
THREE = Engine(6, threads=3)
STEPS: dict[str, Any] = {"reveal": ByConfidence(4), "temperature": 1.0}


class Listening(Shared):
    """Notes who asks, how many threads an operation may take then, and does something first."""

    def __init__(self, then: Callable[[int], None] = lambda calls: None) -> None:
        super().__init__(torch.full((3, 3, 3, 3), 1 / 81))
        self.then, self.asked_by, self.counts = then, set[str](), list[int]()
        self.one_at_a_time = threading.Lock()  # each call has a number of its own

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        assert not torch.is_grad_enabled()
        with self.one_at_a_time:
            self.asked_by.add(threading.current_thread().name)
            self.counts.append(torch.get_num_threads())
            calls = len(self.counts)
        self.then(calls)
        return super().log_probs(x_t, encoded)


class Unsafe(Listening):
    thread_safe = False


def drawn(expert: TabularExpert, engine: Engine = THREE, **options: Any) -> Samples:
    return engine.sample([expert], Mixture(), empty(ITEMS), **STEPS, **options)


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch):
    """Tests run with one, which would hide that the number is changed, and given back."""
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2
    assert not threads._computing.locked()
    torch.set_num_threads(1)


def test_every_part_has_a_thread_that_computes_alone() -> None:
    expert = Listening()
    ours = drawn(expert)
    assert len(expert.asked_by) == 3
    assert all(name.startswith("factordiff") for name in expert.asked_by)
    assert set(expert.counts) == {1}
    assert not differences(ours, drawn(expert, Engine(6)))


def test_an_expert_that_does_not_say_so_is_asked_in_one_thread() -> None:
    for together in ([Unsafe()], [Unsafe(), Listening()]):
        THREE.sample(together, Mixture(), empty(ITEMS), **STEPS)
        assert together[-1].asked_by == {threading.current_thread().name}


def test_a_trace_is_made_in_one_part() -> None:
    expert = Listening()
    assert drawn(expert, Engine(threads=3), trace=True).trace is not None
    assert expert.asked_by == {threading.current_thread().name}


def test_a_second_request_at_the_same_time_computes_in_its_own_thread() -> None:
    other: list[tuple[Samples, Listening]] = []

    def meanwhile(calls: int) -> None:
        if calls == 1:
            expert = Listening()
            other.append((drawn(expert), expert))

    expert = Listening(meanwhile)
    ours = drawn(expert)
    [(theirs, listening)] = other
    assert len(listening.asked_by) == 1
    assert not differences(ours, theirs)


def failing(calls: int) -> None:
    if calls == 4:
        raise InvalidInput("expert: broken")


def test_an_error_of_one_part_ends_all_and_is_the_callers() -> None:
    expert = Listening(failing)
    with pytest.raises(InvalidInput, match=r"^expert: broken$"):
        drawn(expert, Engine(3, threads=3))
    assert len(expert.counts) < 4 * ITEMS / 2  # every item alone in flight takes four passes


def test_a_bad_expert_is_refused_whichever_part_meets_it() -> None:
    class Bad(Listening):
        def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
            return super().log_probs(x_t, encoded) * 2

    with pytest.raises(InvalidInput, match="expert 1"):
        drawn(Bad())


def test_an_interruption_ends_all_parts() -> None:
    def interrupt(calls: int) -> None:
        if calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.03)

    expert = Listening(interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            drawn(expert, Engine(3, threads=3))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(expert.counts) < 4 * ITEMS / 2


@pytest.mark.parametrize("engine", [Engine(), Engine(6), THREE, Engine(5, threads=2)], ids=repr)
def test_progress_counts_all_parts(engine: Engine) -> None:
    told: list[tuple[int, int]] = []
    given = empty(ITEMS)
    given[::3, :3] = 0
    hidden = int((given == empty(1)[0, 0]).sum())
    engine.sample(
        TOLD[:1], Mixture(), given, torch.arange(ITEMS) % 2, on_step=lambda *step: told.append(step), **STEPS
    )
    filled = [done for done, _ in told]
    assert filled == sorted(filled)
    assert {total for _, total in told} == {hidden}
    assert filled[0] < filled[-1] == hidden


def test_who_listens_can_end_it() -> None:
    def stop(done: int, total: int) -> None:
        if done > total / 3:
            raise TimeoutError("enough")

    expert = Listening()
    with pytest.raises(TimeoutError, match="enough"):
        drawn(expert, Engine(3, threads=3), on_step=stop)
    assert len(expert.counts) < 4 * ITEMS


def test_networks_are_asked_so_by_themselves_and_answer_as_before() -> None:
    experts = [small("trans-ir", seed=1).freeze(), small("conv-ir", seed=2).freeze()]
    blank = torch.full((40, 16), experts[0].vocabulary.mask)
    assert AutoEngine().chosen(experts, blank.device, 40).threads == 2
    asked: tuple[Any, ...] = (experts, Routing(), blank, condition(40))
    ours = AutoEngine().sample(*asked, reveal=ByConfidence(3))
    plain = Engine().sample(*asked, reveal=ByConfidence(3))
    assert torch.equal(ours.x_0, plain.x_0)
    assert torch.allclose(ours.log_density, plain.log_density, atol=1e-4)
    assert torch.equal(ours.nominal_passes, plain.nominal_passes)


def test_no_thread_is_none() -> None:
    with pytest.raises(InvalidInput, match=r"^threads: expected a whole number of at least 1, got 0$"):
        Engine(threads=0)
