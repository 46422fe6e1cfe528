"""Blocks from left to right, against a loop written as LLaDA's is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from factordiff import ByBlock, Routing, Samples, Single, Vocabulary, sample
from factordiff.errors import InvalidInput
from factordiff.sampling.blocks import ORDERS
from factordiff.sampling.rules import reveal_rule, rule_name
from tests.sampling.test_large import Words
from tests.toy import seeds

CELLS, VALUES = 12, 6


def transfers(count: int, steps: int) -> list[int]:
    """How many cells of a block each of its steps reveals, as LLaDA's `get_num_transfer_tokens` has it."""
    return [count // steps + (step < count % steps) for step in range(steps)]


def plain_loop(expert: Any, x: Tensor, length: int, steps: int, score: Any) -> tuple[Tensor, list[list[int]]]:
    """Blocks, steps, the best positions: one row, as it stands in the papers' code. Also the cells of each step."""
    x, revealed = x.clone(), []
    first = int((x == VALUES).nonzero()[0])
    for begin in range(first, len(x), length):
        block = range(begin, min(begin + length, len(x)))
        for count in transfers(sum(int(x[cell]) == VALUES for cell in block), steps):
            if count == 0:
                continue
            p = expert.log_probs(x[None], None)[0].exp()
            confidence = score(p)
            masked = [cell for cell in block if int(x[cell]) == VALUES]
            best = sorted(masked, key=lambda cell: (-float(confidence[cell]), cell))[:count]
            for cell in best:
                x[cell] = p[cell].argmax()
            revealed.append(sorted(best))
    return x, revealed


SCORES = {
    "low-confidence": lambda p: p.max(-1).values,
    "margin": lambda p: p.topk(2).values[:, 0] - p.topk(2).values[:, 1],
    "entropy": lambda p: (p * p.log()).sum(-1),
}


def traced(rule: ByBlock, x: Tensor, seed: int = 0, **settings: Any) -> tuple[Samples, list[list[int]]]:
    found = sample([Words(3, VALUES)], Single(), x[None], reveal=rule, seed=seed, trace=True, **settings)
    assert found.trace is not None
    return found, [step.revealed[0][0] for step in found.trace.steps]


@given(seeds, st.integers(1, 14), st.integers(1, 14), st.sampled_from(sorted(SCORES)))
def test_a_block_is_filled_as_the_plain_loop_fills_it(seed: int, length: int, steps: int, order: Any) -> None:
    x = torch.where(torch.rand(CELLS, generator=torch.Generator().manual_seed(seed)) < 0.7, VALUES, 1)
    x[0], x[5] = 2, VALUES  # a prompt of one, and something to do
    expected, cells = plain_loop(Words(3, VALUES), x, length, steps, SCORES[order])
    found, revealed = traced(ByBlock(length, steps, order), x)
    assert found.x_0[0].tolist() == expected.tolist()
    assert revealed == cells
    assert int(found.executed_passes) == len(cells)


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_come_one_after_the_other(order: Any) -> None:
    x = torch.full((CELLS,), VALUES)
    x[:2] = 0
    _, revealed = traced(ByBlock(4, 3, order), x, seed=5, temperature=1.0)
    blocks = [{(cell - 2) // 4 for cell in cells} for cells in revealed]
    assert all(len(one) == 1 for one in blocks)
    assert [one.pop() for one in blocks] == [0, 0, 0, 1, 1, 1, 2, 2]  # the last block has two cells
    assert [len(cells) for cells in revealed] == [2, 1, 1, 2, 1, 1, 1, 1]


def test_a_random_order_belongs_to_the_seed_and_the_item() -> None:
    x = torch.full((CELLS,), VALUES)
    orders = {tuple(map(tuple, traced(ByBlock(12, 12, "random"), x, seed)[1])) for seed in (1, 1, 2, 3)}
    assert len(orders) == 3


class Ending:
    """Says 1, and the end, which is 0, at cell 3; after that whatever it is told to."""

    vocabulary = Vocabulary(3)

    def __init__(self, sure: float = 0.9) -> None:
        self.sure, self.passes = sure, 0

    def encode(self, condition: Any) -> None:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        self.passes += 1
        p = torch.tensor([0.1, 0.8, 0.1]).repeat(*x_t.shape, 1)
        p[:, 3:] = torch.tensor([self.sure, (1 - self.sure) / 2, (1 - self.sure) / 2])
        return p.log()


def test_a_text_that_has_ended_is_filled_in_one_step() -> None:
    x, plain, ending = torch.full((1, 12), 3), Ending(), Ending()
    sample([plain], Single(), x, reveal=ByBlock(4, 4))
    found = sample([ending], Single(), x, reveal=ByBlock(4, 4, end=0), trace=True)
    assert found.x_0[0].tolist() == [1, 1, 1] + [0] * 9
    assert plain.passes == 12
    assert ending.passes == 5  # four of the first block, and one for all that follows
    # A given end is not the text's own: it was there before.
    given_end = x.clone()
    given_end[0, 0] = 0
    assert not ByBlock(4, 4, end=0).ended(_state(given_end)).any()


def _state(x_t: Tensor) -> Any:
    from factordiff import SamplerState

    return SamplerState.begin(x_t, 3, 1)


def test_an_end_that_is_predicted_can_wait() -> None:
    x = torch.full((1, 4), 3)
    soon = sample([Ending(0.95)], Single(), x, reveal=ByBlock(4, 4, end=0), trace=True).trace
    late = sample([Ending(0.95)], Single(), x, reveal=ByBlock(4, 4, end=0, end_last=True), trace=True).trace
    assert soon is not None
    assert late is not None
    assert soon.steps[0].revealed == [[[3]]]
    assert [step.revealed[0][0] for step in late.steps] == [[0], [1], [2], [3]]


@given(seeds, st.sampled_from(ORDERS))
def test_only_the_block_is_asked_about_at_large_vocabularies(seed: int, order: Any) -> None:
    from tests.sampling.test_large import WordsAt

    experts, values = [WordsAt(seed % 1000, 1500), WordsAt(2, 1500)], 1500
    found = sample(
        experts, Routing(), torch.full((2, CELLS), values), reveal=ByBlock(4, 2, order), temperature=1.0
    )
    assert (found.x_0 < values).all()
    assert [int(cells.sum()) for cells in experts[0].asked] == [8, 4] * 3


def test_blocks_have_names() -> None:
    rule = reveal_rule("block:32x8:random")
    assert rule == ByBlock(32, 8, "random")
    assert reveal_rule(rule_name(rule)) == rule
    assert reveal_rule("block:16x4") == ByBlock(16, 4)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "block:32",
            "reveal: expected a number after 'block', as block:32x8 or block:32x8:random, got 'block:32'",
        ),
        ("block:0x3", "length: expected a whole number of at least 1, got 0"),
        ("block:4x3:sure", "order: expected one of low-confidence, random, margin, entropy, got 'sure'"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_names_that_mean_no_block_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        reveal_rule(name)


@pytest.mark.usefixtures("untyped")
def test_ends_that_are_no_value_are_refused() -> None:
    with pytest.raises(InvalidInput, match="end: expected the value that ends a text, got -1"):
        ByBlock(end=-1)
    with pytest.raises(
        InvalidInput, match="end_last: expected the value that ends a text as `end`, got none"
    ):
        ByBlock(end_last=True)
