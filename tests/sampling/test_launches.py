"""What a step over a large vocabulary costs a GPU beside the passes: operations, and waits for the device.

While experts work, whatever is launched without a wait is nearly free; after a wait the device idles until the next
launch (`tests/ledger.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from factordiff import (
    Ancestral,
    ByBlock,
    ByConfidence,
    ByMargin,
    Composition,
    GeometricMean,
    Mixture,
    Repaired,
    RevealRule,
    Routing,
    SamplerState,
    Single,
    SoftRouting,
    SuperDiff,
    Vocabulary,
    feynman_kac,
    rne,
    sample,
)
from factordiff.experts.forward import Forward
from factordiff.sampling.reveal import Posterior, Wrapped
from factordiff.sampling.rows import some_rows
from factordiff.sampling.step import step
from factordiff.types import LARGE, Cells
from tests.ledger import Ledger, waits

pytestmark = pytest.mark.usefixtures("as_on_a_gpu")

CELLS, VALUES = 64, LARGE + 100


class Counted:
    """An expert at some cells; whatever it does is one entry of the ledger."""

    vocabulary = Vocabulary(VALUES)

    def __init__(self, seed: int, ledger: Ledger) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.seen = torch.randn(VALUES + 1, 4, generator=generator)
        self.place = torch.randn(CELLS, 4, generator=generator)
        self.head = 3.0 * torch.randn(4, VALUES, generator=generator)
        self.ledger = ledger

    def encode(self, condition: Any) -> None:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        raise AssertionError("asked about every cell")

    def log_probs_at(self, x_t: Tensor, encoded: Any, cells: Cells) -> Tensor:
        self.ledger.entries.append("pass")
        with _disable_current_modes():
            hidden = torch.tanh(self.seen[x_t].mean(1, keepdim=True) + self.place)
            return torch.log_softmax(hidden[cells] @ self.head, dim=-1)


def second_step(
    composition: Composition, rule: RevealRule, batch: int, temperature: float = 0.0
) -> tuple[list[str], list[str]]:
    """The operations of a step that is not the first: the first looks at once at what the experts say."""
    ledger = Ledger()
    forward = Forward([Counted(seed, ledger) for seed in (1, 2)], None, batch)
    state = SamplerState.begin(torch.full((batch, CELLS), VALUES), VALUES, 2, repairs=rule.repairs)
    with torch.no_grad():
        state, _ = step(state, forward, composition, rule, temperature=temperature)
        ledger.entries.clear()
        with ledger:
            step(state, forward, composition, rule, temperature=temperature)
    return ledger.sides()


@pytest.mark.parametrize("batch", [1, 3])
def test_block_decoding_is_few_operations_and_never_waits_for_the_passes(batch: int) -> None:
    before, after = second_step(Routing(), ByBlock(32, 16), batch)
    assert waits(after) == []
    assert len(after) <= 170
    assert len(waits(before)) <= 3
    assert len(before) <= 85


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(
    "composition", [Routing(), SoftRouting(), Mixture(), GeometricMean(), SuperDiff(), Single()], ids=repr
)
@pytest.mark.parametrize(
    "rule",
    [ByBlock(32, 16, order) for order in ("low-confidence", "margin", "entropy", "random")]
    + [ByBlock(32, 16, end=3, end_last=True), ByConfidence(40), Ancestral(4), Repaired(ByConfidence(40))],
    ids=repr,
)
def test_no_step_waits_for_the_passes(composition: Composition, rule: RevealRule, temperature: float) -> None:
    assert waits(second_step(composition, rule, 2, temperature)[1]) == []


def test_a_rule_that_cannot_know_how_many_waits_once() -> None:
    assert len(waits(second_step(Routing(), ByMargin(0.9), 2)[1])) == 1


def test_the_ledger_sees_waits() -> None:
    numbers = torch.arange(4)
    with Ledger() as ledger:
        numbers[numbers > 1]
        int(numbers.sum())
        numbers.nonzero()
        numbers[numbers]
    assert len(waits(ledger.entries)) == 3


@dataclass(frozen=True)
class Bounded(Wrapped):
    """A rule whose choice is compared with what it says beforehand; it may say more, or nothing."""

    rule: RevealRule
    more: int | None = 0

    def at_most(self, candidates: Cells, state: SamplerState) -> int | None:
        known = self.rule.at_most(candidates, state)
        return None if self.more is None or known is None else known + self.more

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        chosen = self.rule.choose(posterior, candidates, state)
        known = self.rule.at_most(candidates, state)
        assert known is not None
        assert int(chosen.sum()) <= known
        return chosen


@pytest.mark.parametrize(
    "composition", [Routing(), SoftRouting(), SuperDiff(), feynman_kac([1.0, 0.5]), rne()], ids=repr
)
@pytest.mark.parametrize(
    "rule",
    [ByBlock(40, 3), ByBlock(40, 2, end=5), ByConfidence(5), Ancestral(4)],
    ids=repr,
)
def test_cells_that_fill_a_chunk_up_change_nothing(composition: Composition, rule: RevealRule) -> None:
    experts = [Counted(seed, Ledger()) for seed in (1, 2)]
    x_t = torch.full((3, CELLS), VALUES)
    x_t[1, :11] = torch.arange(11)
    settings: dict[str, Any] = {"temperature": 0.8, "seed": 2}
    if composition.target(2) is not None:
        settings |= {"particles": 2, "temperature": 1.0}
    looked = sample(experts, composition, x_t, reveal=Bounded(rule, None), **settings)
    for more in (0, 1, 500):
        told = sample(experts, composition, x_t, reveal=Bounded(rule, more), **settings)
        assert torch.equal(told.particles, looked.particles)
        assert torch.equal(told.log_density, looked.log_density)
        assert torch.equal(told.log_w, looked.log_w)
        assert torch.equal(told.executed_passes, looked.executed_passes)


def test_rows_of_what_was_composed_are_what_rows_compose_to() -> None:
    state = SamplerState.begin(torch.full((5, 1), 7), 7, 3)
    log_p = torch.log_softmax(torch.randn(3, 5, 1, 7, generator=torch.Generator().manual_seed(1)), -1)
    some = torch.tensor([3, 0])
    for composition in (Routing(), SoftRouting(), SuperDiff(), GeometricMean()):
        expected = composition(log_p[:, some], some_rows(state, some))
        found = composition(log_p, state).rows(some)
        for name, part in vars(expected).items():
            other = getattr(found, name)
            assert (part is None) == (other is None), name
            assert part is None or torch.equal(part, other), name
