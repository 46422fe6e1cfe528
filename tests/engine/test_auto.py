"""The engine that is chosen: by device and size alone, and it changes no result."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.bench_language import TinyLinear
from benchmarks.llada_shape import SHAPES, LladaShaped
from factordiff import compose
from factordiff.arc.dataset import Dataset
from factordiff.composition.composition import Composition
from factordiff.composition.factors import whole
from factordiff.composition.routing import Routing
from factordiff.engine.auto import (
    COMPILE_FROM,
    CPU_ROWS,
    FEWEST,
    GPU_ROWS,
    THREAD_ROWS,
    AutoEngine,
    launching_decides,
)
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.engine.fast_network import FastNetwork, fast_form
from factordiff.networks.store import build
from factordiff.sampling.adaptive import ByMargin
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.sampler import sample
from factordiff.types import LARGE
from factordiff.vocabulary import Vocabulary
from tests.engine.test_engine import TOLD
from tests.solving_experts import TINY
from tests.toy import empty

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("device", "rows", "particles", "expected"),
    [
        (CPU, CPU_ROWS, 1, Engine()),
        (CPU, CPU_ROWS + 1, 1, Engine(BatchSizes(CPU_ROWS))),
        (CPU, 10**6, 1, Engine(BatchSizes(CPU_ROWS))),
        (CPU, 1000, 500, Engine(BatchSizes(500))),
        (CUDA, GPU_ROWS, 1, Engine()),
        (CUDA, GPU_ROWS + 1, 1, Engine(BatchSizes(GPU_ROWS))),
        (CUDA, COMPILE_FROM - 1, 8, Engine(BatchSizes(4 * GPU_ROWS))),
        (CUDA, COMPILE_FROM, 1, Engine(BatchSizes.for_graphs(GPU_ROWS), compiled=True, cuda_graph=True)),
    ],
)
def test_the_choice(
    device: torch.device, rows: int, particles: int, expected: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert AutoEngine().chosen(TOLD, device, rows, particles) == expected


@pytest.mark.parametrize(
    ("rows", "particles", "expected"),
    [
        (2 * FEWEST - 1, 1, Engine()),
        (2 * FEWEST, 1, Engine(BatchSizes(2 * THREAD_ROWS), threads=2)),
        (10**6, 1, Engine(BatchSizes(4 * THREAD_ROWS), threads=4)),
        (10**6, 500, Engine(BatchSizes(4 * 500), threads=4)),
    ],
)
def test_threads_on_a_cpu(
    rows: int, particles: int, expected: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    auto = AutoEngine()
    assert auto.chosen(TOLD, CPU, rows, particles) == expected
    assert auto.chosen([*TOLD, Hint()], CPU, rows, particles).threads == 1  # which does not say that it may
    assert auto.chosen(TOLD, CUDA, rows, particles).threads == 1
    assert AutoEngine(True).chosen(TOLD, CPU, rows, particles).threads == 1


def test_compilation_by_hand() -> None:
    assert AutoEngine(True).chosen(TOLD, CUDA, 1).compiled
    assert not AutoEngine(False).chosen(TOLD, CUDA, COMPILE_FROM).compiled
    here = AutoEngine(True).chosen(TOLD, CPU, 1)
    assert here.compiled
    assert not here.cuda_graph  # there is nothing to record


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factordiff.engine.auto.CPU_ROWS", 6)
    condition, x_t = torch.arange(20) % 2, empty(20)
    plain = sample(TOLD, Routing(), x_t, condition, reveal=ByMargin(0.5))
    auto = AutoEngine().sample(TOLD, Routing(), x_t, condition, reveal=ByMargin(0.5))
    assert torch.equal(plain.x_0, auto.x_0)
    assert torch.equal(plain.log_density, auto.log_density)
    assert torch.equal(plain.nominal_passes, auto.nominal_passes)


class Hint:
    """Told one word for all items, which cannot be cut into items."""

    vocabulary = Vocabulary(3)

    def __init__(self) -> None:
        self.rows: list[int] = []

    def encode(self, condition: str) -> None:
        assert condition == "for all"

    def log_probs(self, x_t: Tensor, encoded: None) -> Tensor:
        self.rows.append(len(x_t))
        return torch.tensor([0.5, 0.3, 0.2]).log().expand(*x_t.shape, 3)


def test_a_condition_for_all_and_a_trace_go_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factordiff.engine.auto.CPU_ROWS", 4)
    expert = Hint()
    AutoEngine().sample([expert], Routing(), empty(9), "for all")
    assert set(expert.rows) == {9}
    drawn = AutoEngine().sample(TOLD, Routing(), empty(9), torch.zeros(9, dtype=torch.int64), trace=True)
    assert drawn.trace is not None
    other = Hint()
    other.encode = lambda condition: None  # type: ignore[method-assign]
    AutoEngine().sample([other], Routing(), empty(9))
    assert max(other.rows) == 4


def test_a_pickled_team_holds_its_weights_once() -> None:
    team = compose([build("trans-ir", TINY).freeze()])
    network: Any = team.experts[0]
    alone = len(pickle.dumps(team))
    fast = fast_form(network)
    assert isinstance(fast, FastNetwork)
    assert fast_form(network) is fast
    assert len(pickle.dumps(team)) == alone
    assert alone < 4 * network.layout.count + 20_000
    again = pickle.loads(pickle.dumps(team))
    assert again.experts[0].frozen
    assert again.experts[0].fast is None
    assert torch.equal(again.experts[0].vector, network.vector)


@pytest.mark.slow
def test_many_queries_at_once_are_faster() -> None:
    """In one thread, as tests run, by 1.4; what is left of a pass is arithmetic that batches cannot save."""
    team, queries = (
        compose(["trans-full", "conv-full"], layout=(10, 10)),
        Dataset.load().evaluation("validation"),
    )
    x_t = torch.full((256, 100), 10)

    def alone() -> list[Tensor]:
        return [team.sample(x_t[:1], queries.condition(slice(item, item + 1))).x_0[0] for item in range(256)]

    def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
        begun = time.perf_counter()
        found = run()
        return time.perf_counter() - begun, found

    team.sample(x_t[:2], queries.condition(slice(0, 2)))
    slow, one_by_one = seconds(alone)
    quick, together = seconds(lambda: team.sample(x_t, queries.condition(slice(0, 256))).x_0)
    assert slow >= 1.15 * quick
    assert (torch.stack(one_by_one) == together).all(-1).double().mean() > 0.99  # but for near-ties


@pytest.mark.parametrize(
    ("values", "rows", "rule", "composition", "expected"),
    [
        (126_464, 1, ByMargin(), Routing(), True),
        (126_464, 8, ByMargin(), Routing(), False),
        (
            126_464,
            8,
            ByBlock(32, 32),
            Routing(),
            False,
        ),  # passes of eight rows are longer than launching them
        (126_464, 4, ByBlock(32, 32), Routing(), True),  # 4 x 32 cells are half of one row's
        (126_464, 4, ByBlock(32, 32, end=3), Routing(), False),  # a text that ends fills all its cells
        (126_464, 4, ByBlock(32, 32), Routing(whole(256)), False),  # asks about a factor's other cells
        (126_464, 4, ByBlock(256, 32), Routing(), False),
        (LARGE + 1, 1, ByMargin(), Routing(), True),
        (LARGE, 1, ByBlock(32, 32), Routing(), False),
    ],
)
def test_few_cells_of_a_large_vocabulary_are_recorded(
    values: int, rows: int, rule: RevealRule, composition: Composition, expected: bool
) -> None:
    expert = TinyLinear(0, values, width=1, positions=1)
    assert launching_decides([expert, expert], composition, rule, rows, 256) is expected


@pytest.mark.gpu
def test_one_sequence_is_recorded_and_answers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [LladaShaped(SHAPES["tiny"], seed, CUDA, torch.float32) for seed in (1, 2)]
    x_t = torch.full((1, 64), models[0].vocabulary.mask, device=CUDA)
    recorded = AutoEngine().sample(models, Routing(), x_t, reveal=ByBlock(16, 8))
    assert recorded.how.startswith("kernel"), recorded.how
    monkeypatch.setattr("factordiff.engine.auto.RECORDED_BYTES", 0)
    plain = AutoEngine().sample(models, Routing(), x_t, reveal=ByBlock(16, 8))
    assert plain.how == ""
    assert torch.equal(recorded.x_0, plain.x_0)
