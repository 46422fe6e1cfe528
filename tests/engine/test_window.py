"""Recorded steps over a window of fixed width: the plain steps' numbers to the bit, fewer cells, and no waits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from benchmarks.llada_shape import SHAPES, LladaShaped
from factordiff import (
    ByBlock,
    ByConfidence,
    ByMargin,
    Composition,
    Engine,
    GeometricMean,
    Mixture,
    Product,
    Repaired,
    RevealRule,
    Routing,
    SamplerState,
    Samples,
    Single,
    SoftRouting,
    SuperDiff,
    rows,
    sample,
)
from factordiff.composition import confidence
from factordiff.composition.confidence import Faster, RunnerUp, computed_by
from factordiff.engine import cuda_graph_step
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.cuda_graph_step import CudaGraphStep
from factordiff.engine.expert_batch import ExpertBatch
from factordiff.engine.queue import Queue
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.cell_outputs import SupportsPlaces
from factordiff.sampling.blocks import ORDERS
from factordiff.sampling.orders import InBlocks
from factordiff.sampling.step import step
from factordiff.types import LARGE, Cells
from tests.ledger import Ledger, waits
from tests.text.tables import Noise
from tests.toy import seeds

pytestmark = pytest.mark.usefixtures("as_on_a_gpu")

CELLS, VALUES = 13, LARGE + 30
MOST = 166  # operations of a recorded piece
COMPOSITIONS: list[Composition] = [
    Routing(),
    Routing(temperatures=[1.0, 0.5]),
    Mixture([0.3, 0.7]),
    Product([1.0, 0.5]),
    GeometricMean(),
    SuperDiff([0.4, 0.6]),
    SoftRouting(0.2),
    Single(1),
]


class NoiseAt(Noise):
    """Asked at some cells; it remembers at which."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, VALUES)
        self.asked: list[Cells] = []

    def log_probs_at(self, x_t: Tensor, encoded: None, cells: Cells) -> Tensor:
        self.asked.append(cells)
        return self.log_probs(x_t, encoded)[cells]


class NoiseAtPlaces(Noise):
    """Asked at some cells by their numbers."""

    def log_probs_at_places(self, x_t: Tensor, encoded: None, places: Tensor) -> Tensor:
        with _disable_current_modes():
            assert (places.diff() > 0).all()
        return self.log_probs(x_t, encoded).flatten(0, 1)[places]


def kinds(seed: int) -> list[Noise]:
    """One expert in each way of being asked."""
    return [Noise(seed, VALUES), NoiseAt(seed), NoiseAtPlaces(seed, VALUES)]


def texts() -> Tensor:
    """Items with prompts of several lengths, gaps, and blocks that the end cuts short."""
    x_t = torch.full((7, CELLS), VALUES)
    for item, prompt in enumerate((0, 2, 5, 1, 12, 3, 8)):
        x_t[item, :prompt] = torch.arange(prompt) + item
    x_t[1, 6:9] = 4
    x_t[3, -1] = 9
    return x_t


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[AskedCells]:
    """What recorded steps ask about."""
    found: list[AskedCells] = []
    plain = ExpertBatch.ask_at

    def watched(batch: ExpertBatch, x_t: Tensor, asked: AskedCells) -> Any:
        found.append(asked)
        return plain(batch, x_t, asked)

    monkeypatch.setattr(ExpertBatch, "ask_at", watched)
    return found


def same(one: Samples, other: Samples) -> bool:
    names = ("x_0", "particles", "log_w", "log_density", "nominal_passes", "executed_passes")
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("composition", COMPOSITIONS, ids=repr)
def test_steps_over_the_window_are_the_plain_ones_to_the_bit(
    composition: Composition, temperature: float, order: Any, asked: list[AskedCells]
) -> None:
    turn = COMPOSITIONS.index(composition) + ORDERS.index(
        order
    )  # every block and every way of asking has its turn
    length, steps = ((4, 3), (5, 5))[turn % 2]
    settings: dict[str, Any] = {
        "reveal": ByBlock(length, steps, order),
        "temperature": temperature,
        "seed": 3,
    }
    experts = list(zip(kinds(1), kinds(2), strict=True))
    plain = sample(experts[0], composition, texts(), **settings)
    found = Engine(3, cuda_graph=True).sample(experts[turn % 3], composition, texts(), **settings)
    assert same(found, plain)
    assert {len(one.row) for one in asked} == {3 * length}


def test_a_window_is_composed_in_chunks_too(asked: list[AskedCells]) -> None:
    experts = [NoiseAtPlaces(seed, VALUES) for seed in (1, 2)]
    settings: dict[str, Any] = {"reveal": ByBlock(4, 2), "temperature": 0.8}
    plain = sample(experts, SuperDiff(), texts(), **settings)
    few = 2 * VALUES * 4 * 5  # bytes: five of the twelve cells at a time
    assert same(
        Engine(3, cuda_graph=True, chunk=few).sample(experts, SuperDiff(), texts(), **settings), plain
    )
    assert asked


def test_batches_that_are_filled_up_ask_about_their_own_rows(asked: list[AskedCells]) -> None:
    experts, rule = kinds(1), ByBlock(4, 2)
    plain = sample(experts, Mixture(), texts(), reveal=rule)
    found = Engine(BatchSizes(3, (5,)), cuda_graph=True).sample(experts, Mixture(), texts(), reveal=rule)
    assert same(found, plain)
    assert asked
    assert found.padded_passes > 0
    assert {cells.shape for cells in experts[1].asked if len(cells)} >= {(5, CELLS)}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("composition", "rule"),
    [
        (Routing(), ByBlock(4, 2, end=3)),  # a text that ends fills all its cells
        (Routing(), ByConfidence(9)),
        (Routing(rows(1, CELLS)), ByBlock(4, 2)),  # asks about a factor's other cells
    ],
    ids=repr,
)
def test_without_a_window_all_cells_are_asked_about(
    composition: Composition, rule: RevealRule, asked: list[AskedCells]
) -> None:
    experts, x_t = [Noise(seed, VALUES) for seed in (1, 2)], texts()
    found = Engine(3, cuda_graph=True).sample(experts, composition, x_t, reveal=rule)
    assert torch.equal(found.x_0, sample(experts, composition, x_t, reveal=rule).x_0)
    assert not asked


def test_small_vocabularies_are_asked_about_all_cells(asked: list[AskedCells]) -> None:
    experts, x_t = [Noise(seed, 9) for seed in (1, 2)], torch.full((6, CELLS), 9)
    found = Engine(3, cuda_graph=True).sample(experts, Routing(), x_t, reveal=ByBlock(4, 2))
    assert same(found, sample(experts, Routing(), x_t, reveal=ByBlock(4, 2)))
    assert not asked


def test_what_is_cut_to_its_likeliest_values_is_not_recorded(asked: list[AskedCells]) -> None:
    experts, rule = [Noise(seed, VALUES) for seed in (1, 2)], ByBlock(4, 2)
    plain = Engine(3, top_k=20).sample(experts, Mixture(), texts(), reveal=rule)
    recorded = Engine(3, top_k=20, cuda_graph=True).sample(experts, Mixture(), texts(), reveal=rule)
    assert same(recorded, plain)
    assert not asked


def test_bad_distributions_are_refused_over_a_window_too(asked: list[AskedCells]) -> None:
    class Tired(NoiseAtPlaces):
        """Adds up to one for a while."""

        calls = 0

        def log_probs_at_places(self, x_t: Tensor, encoded: None, places: Tensor) -> Tensor:
            self.calls += 1
            return super().log_probs_at_places(x_t, encoded, places) + (0.1 if self.calls > 3 else 0.0)

    with pytest.raises(ValueError, match="those of expert 2 sum to one only within"):
        Engine(3, cuda_graph=True).sample(
            [Noise(1, VALUES), Tired(2, VALUES)], Routing(), texts(), reveal=ByBlock(4, 2)
        )
    assert asked


@given(seeds, st.integers(1, 15), st.integers(1, 7), st.sampled_from(ORDERS), st.booleans())
def test_a_window_holds_all_candidates(seed: int, length: int, steps: int, order: Any, inside: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    x_t = torch.where(torch.rand(4, CELLS, generator=generator) < 0.6, 6, 1)
    block = ByBlock(length, steps, order)
    rule: RevealRule = InBlocks(Repaired(block)) if inside else block
    window = rule.window(CELLS)
    assert window is not None
    assert window.width == min(length, CELLS)
    state = SamplerState.begin(x_t, 6, 1, repairs=rule.repairs)

    def forward(state: SamplerState, cells: Cells) -> Any:
        assert window is not None
        found = window.cells(state)
        assert found.shape == (4, window.width)
        assert ((found >= 0) & (found < CELLS)).all()
        assert (found.diff(dim=1) > 0).all()
        named = torch.zeros_like(cells).scatter(1, found, True)
        assert not (cells & ~named).any()
        return Noise(seed, 6).log_probs(state.x_t, None)[None], torch.zeros(4, dtype=torch.int64)

    while state.masked.any():
        state, info = step(state, forward, Single(), rule)
        assert int(info.proposal.cells.sum(-1).max()) <= window.most


def test_a_block_that_the_end_cuts_short_has_a_whole_window() -> None:
    x_t = torch.tensor([[6, 6, 6, 6, 6, 6], [1, 1, 1, 1, 6, 6], [1, 6, 1, 1, 1, 6], [1, 1, 1, 1, 1, 1]])
    state = SamplerState.begin(x_t, 6, 1)
    window = ByBlock(4, 3).window(6)
    assert window is not None
    assert (window.width, window.most) == (4, 2)
    assert window.cells(state)[:3].tolist() == [[0, 1, 2, 3], [2, 3, 4, 5], [1, 2, 3, 4]]
    later = replace(state, x_t=torch.where(torch.arange(6) < 5, 1, x_t))
    assert window.cells(later)[:3].tolist() == [[2, 3, 4, 5]] * 3
    wide = ByBlock(9, 2).window(6)
    assert wide is not None
    assert (wide.width, wide.most) == (6, 3)


NOT_FASTER = Faster(lambda _: None, lambda _: None)


def recorded_piece(
    monkeypatch: pytest.MonkeyPatch, composition: Composition, rule: RevealRule, temperature: float = 0.0
) -> list[str]:
    """The operations of the piece that a GPU records, with its kernel as one of them."""
    ledger, plain = Ledger(), CudaGraphStep._plain

    def kernel(log_p: Tensor) -> RunnerUp:
        ledger.entries.append("kernel")
        with _disable_current_modes(), computed_by(NOT_FASTER):
            return confidence._against_runner_up(log_p)

    def watched(house: CudaGraphStep, *given: Tensor) -> cuda_graph_step.Stepped:
        ledger.entries.clear()
        with ledger, computed_by(Faster(lambda _: None, kernel)):
            return plain(house, *given)

    monkeypatch.setattr(CudaGraphStep, "_plain", watched)
    experts, x_t = [Noise(seed, VALUES) for seed in (1, 2)], torch.full((3, CELLS), VALUES)
    Engine(3, cuda_graph=True).sample(experts, composition, x_t, reveal=rule, temperature=temperature)
    assert "kernel" in ledger.entries
    return ledger.entries


@pytest.mark.parametrize("composition", COMPOSITIONS, ids=repr)
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_recorded_neither_waits_nor_copies_from_the_host(
    composition: Composition, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = recorded_piece(monkeypatch, composition, ByBlock(4, 2, order), temperature=0.8)
    assert waits(entries) == []
    assert "lift_fresh" not in entries


def test_a_recorded_piece_is_few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = recorded_piece(monkeypatch, Routing(), ByBlock(4, 4))
    assert entries.count("kernel") == 2  # of what the experts say, and of what is composed
    assert len(entries) <= MOST


def test_between_the_looks_at_who_is_full_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    ledgers: list[list[str]] = []
    exchanged, stepped = Queue._exchanged, CudaGraphStep.step

    def looked(queue: Queue, state: SamplerState) -> SamplerState:
        looks.append(len(ledgers))
        return exchanged(queue, state)

    def watched(house: CudaGraphStep, state: SamplerState) -> SamplerState:
        with Ledger() as ledger:
            state = stepped(house, state)
        ledgers.append(ledger.entries)
        return state

    monkeypatch.setattr(Queue, "_exchanged", looked)
    monkeypatch.setattr(CudaGraphStep, "step", watched)
    experts = [NoiseAtPlaces(seed, VALUES) for seed in (1, 2)]
    x_t = torch.full((2, CELLS), VALUES)
    x_t[1, :3] = 1
    found = Engine(2, cuda_graph=True).sample(experts, Routing(), x_t, reveal=ByBlock(4, 4))
    assert (found.x_0 < VALUES).all()
    # One cell of each row a step: the second row is full after ten steps, of which the first was a plain one.
    assert len(ledgers) == 9
    assert looks == [0, 9, 9]  # and the first after three more, which nobody shares
    assert [waits(entries) for entries in ledgers] == [[]] * 9


def test_whoever_is_full_leaves_at_once() -> None:
    generator, expert = torch.Generator().manual_seed(1), Noise(1, 6)
    for length, steps in product((1, 3, 5), (1, 2, 4)):
        x_t = torch.where(torch.rand(6, 9, generator=generator) < 0.6, 6, 1)
        plain = sample([expert], Single(), x_t, reveal=ByBlock(length, steps))
        # A step in one piece asks about every row: one that is full and stays would take more passes.
        found = Engine(2, cuda_graph=True).sample([expert], Single(), x_t, reveal=ByBlock(length, steps))
        assert same(found, plain)


def test_who_can_be_asked_by_numbers() -> None:
    assert isinstance(NoiseAtPlaces(1), SupportsPlaces)
    assert not isinstance(NoiseAt(1), SupportsPlaces)
    assert ByMargin().window(4) is None


@pytest.mark.gpu
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("composition", COMPOSITIONS, ids=repr)
def test_on_a_gpu_a_recorded_window_is_the_plain_loop(
    composition: Composition, order: Any, temperature: float, asked: list[AskedCells]
) -> None:
    models = [LladaShaped(SHAPES["tiny"], seed, torch.device("cuda"), torch.float32) for seed in (1, 2)]
    x_t = torch.full((3, 50), models[0].vocabulary.mask, device="cuda")
    x_t[1, :2] = 7
    settings: dict[str, Any] = {"reveal": ByBlock(16, 8, order), "temperature": temperature}
    plain = sample(models, composition, x_t, **settings)
    found = Engine(3, cuda_graph=True).sample(models, composition, x_t, **settings)
    assert found.how == "kernel"
    assert {len(one.row) for one in asked} == {3 * 16}
    assert torch.equal(found.executed_passes, plain.executed_passes)
    # A sum of another order may round a near-tie otherwise; a row that took another turn is another text.
    assert (found.x_0 == plain.x_0).all(-1).sum() >= 2
