"""HEX on the loop: particles whose blocks differ, and a vote over their whole answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.method import spec
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import Product
from factordiff.composition.routing import Routing
from factordiff.composition.vote import most_frequent
from factordiff.engine.decode import decode
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.sampling.adaptive import ByMargin, ByProduct, Repaired
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.orders import InBlocks
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.team.team import compose
from tests.engine.test_engine import TOLD, VARIANTS, differences
from tests.toy import CELLS, EXPERTS, MASK, empty, states

HEX = spec("hex")


def some(items: int, hidden: float = 0.8) -> Tensor:
    return states(7, items, CELLS, MASK, hidden=hidden)


def test_a_particle_in_blocks_is_a_run_in_blocks() -> None:
    """One cell a pass, the surest of its block: the block rule with as many steps as cells, by margin."""
    drawn = sample(EXPERTS, Routing(), empty(3), reveal=InBlocks(ByConfidence(128)), particles=3)
    for particle, length in enumerate((4, 2, 1)):
        block = ByBlock(length, length, order="margin")
        alone = sample(EXPERTS, Routing(), empty(3), reveal=block)
        assert torch.equal(drawn.particles[:, particle], alone.x_0)
        assert torch.equal(drawn.log_density[:, :, particle], alone.log_density[:, :, 0])


def test_blocks_are_halved_and_begin_again() -> None:
    hidden = [True, False, True, True, False, True, True, True]  # six of eight cells
    x_t = torch.where(torch.tensor([hidden]), MASK, 0)
    state = SamplerState.begin(x_t, MASK, 1, particles=5)
    blocks = [row.nonzero().flatten().tolist() for row in InBlocks(ByConfidence()).block(state)]
    whole = blocks[0]
    assert [cell for cell in whole if hidden[cell]] == [0, 2, 3, 5, 6, 7]
    assert [[c for c in block if hidden[c]] for block in blocks[1:4]] == [[0, 2, 3], [0, 2], [0]]
    assert blocks[4] == whole


def test_no_step_asks_about_nobody() -> None:
    """A rule that draws its cells may draw none of a block's: such steps are idle, as others are."""
    for seed in range(5):
        request: dict[str, Any] = {
            "reveal": InBlocks(Ancestral(11)),
            "particles": 2,
            "seed": seed,
            "trace": True,
        }
        drawn = sample(EXPERTS, Mixture(), empty(1), **request)
        assert drawn.trace is not None
        assert all(any(step.revealed[0]) for step in drawn.trace.steps)
        assert not differences(Engine(8).sample(EXPERTS, Mixture(), empty(1), **request), drawn)


RULES: list[RevealRule] = [
    ByConfidence(4), ByConfidence(2), ByMargin(0.4), ByProduct(0.6), Ancestral(3), ByBlock(2, 1),
    Repaired(ByMargin(0.3), 0.6),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_goes_from_block_to_block_and_ends(rule: RevealRule) -> None:
    drawn = sample(EXPERTS, Mixture(), some(9), reveal=InBlocks(rule), particles=4, trace=True)
    assert int(drawn.particles.max()) < MASK
    given = some(9) != MASK
    assert torch.equal(drawn.x_0[given], some(9)[given])
    if rule.repairs:
        return
    assert drawn.trace is not None
    for item, row in enumerate(some(9)):
        order = [
            cell for step in drawn.trace.steps for cell in step.revealed[item][2]
        ]  # the last: cell by cell
        count = int((row == MASK).sum())
        if count in (3, 4):
            assert order == sorted(order)


def most_voted(runs: list[list[int]]) -> list[list[int]]:
    """The answers that most runs gave."""
    votes = Counter(map(tuple, runs))
    return [list(answer) for answer, count in votes.items() if count == max(votes.values())]


def test_the_answer_has_most_votes_and_ties_go_to_the_likeliest() -> None:
    runs = torch.tensor(
        [[[0, 1], [1, 1], [0, 1], [2, 2]], [[0, 0], [1, 1], [0, 0], [1, 1]], [[0, 0], [1, 1], [2, 2], [0, 1]]]
    )
    likely = torch.tensor(
        [[-9.0, -1.0, -9.0, -1.0], [-3.0, -2.5, -3.0, -2.0], [-5.0, -5.0, -torch.inf, -6.0]]
    ).double()
    assert most_frequent(runs, likely).tolist() == [0, 3, 0]
    assert most_frequent(runs, torch.full_like(likely, -torch.inf)).tolist() == [0, 0, 0]
    assert most_frequent(runs, torch.full_like(likely, torch.nan)).tolist() == [0, 0, 0]


def test_the_method_is_a_vote_over_runs_that_could_be_run_apart() -> None:
    how = HEX.method({"orders": 3}, ["full", "full"])
    x_t = some(40)
    drawn = decode(how, EXPERTS, x_t, None, reveal=ByConfidence(128))
    runs = drawn.particles.tolist()
    assert all(answer in most_voted(runs[item]) for item, answer in enumerate(drawn.x_0.tolist()))
    assert any(
        len(most_voted(each)) == 1 and answer != each[0]
        for each, answer in zip(runs, drawn.x_0.tolist(), strict=True)
    )


def test_ties_are_judged_by_the_mixture_along_the_path() -> None:
    how = HEX.method({"orders": 2}, ["full", "full"])
    drawn = decode(how, EXPERTS, empty(1), None, reveal=ByConfidence(128), trace=True)
    x = drawn.particles[0]
    assert not torch.equal(x[0], x[1]), "the orders agree: nothing is tested"
    scores = []
    for run in range(2):
        assert drawn.trace is not None
        at, score = empty(1)[0].clone(), 0.0
        for step in drawn.trace.steps:
            for cell in step.revealed[0][run]:
                chances = [
                    float(one.log_probs(at[None], None)[0, cell, x[run, cell]].exp()) for one in EXPERTS
                ]
                score += torch.tensor(sum(chances) / 2).log().item()
            at = torch.tensor(step.x[0][run])
        scores.append(score)
    best = int(torch.tensor(scores).argmax())
    assert scores[0] != pytest.approx(scores[1])
    assert torch.equal(drawn.x_0[0], x[best])


def test_one_order_is_the_method_itself() -> None:
    one = compose(EXPERTS, "hex", orders=1, within="routing").sample(empty(4))
    assert torch.equal(one.x_0, compose(EXPERTS, "routing").sample(empty(4)).x_0)
    single = compose(EXPERTS[:1], "hex", orders=1).sample(empty(4))
    assert torch.equal(single.x_0, compose(EXPERTS[:1], "single").sample(empty(4)).x_0)


def test_numbers_reach_what_is_within() -> None:
    mixture = HEX.method({"weights": (0.2, 0.8)}, ["full"] * 2).composition
    assert isinstance(mixture, Mixture)
    assert mixture.weights == (0.2, 0.8)
    routing = HEX.method({"within": "routing", "temperatures": (1.0, 0.25)}, ["full"] * 2).composition
    assert isinstance(routing, Routing)
    assert routing.temperatures == (1.0, 0.25)
    product = HEX.method({"within": "product", "beta": (1.0, 0.1)}, ["full"] * 2).composition
    assert isinstance(product, Product)
    assert product.beta == (1.0, 0.1)


def test_permuting_the_experts_with_their_weights_changes_nothing() -> None:
    one = compose(EXPERTS, "hex", weights=[0.3, 0.7]).sample(some(30))
    other = compose(EXPERTS[::-1], "hex", weights=[0.7, 0.3]).sample(some(30))
    assert torch.equal(one.x_0, other.x_0)


@pytest.mark.parametrize("rule", [ByConfidence(3), ByProduct(0.6)], ids=repr)
def test_savings_and_batches_change_nothing(rule: RevealRule) -> None:
    how = HEX.method({}, ["full"] * 3)
    asked: dict[str, Any] = {"reveal": rule, "seed": 2, "items": 3 + torch.arange(7)}
    x_t, condition = some(7), torch.arange(7) % 2
    plain = decode(how, TOLD, x_t, condition, **asked, engine=Engine(share=False))
    for variant in VARIANTS.values():
        assert not differences(decode(how, TOLD, x_t, condition, **asked, engine=variant), plain)
    alone = decode(how, TOLD, x_t[4:5], condition[4:5], reveal=rule, seed=2, items=torch.tensor([7]))
    assert torch.equal(alone.x_0[0], plain.x_0[4])


def test_equal_states_of_different_orders_are_asked_about_once() -> None:
    drawn = compose(EXPERTS, "hex", reveal="exact").sample(empty(6))
    assert drawn.nominal_passes.tolist() == [2 * 5 * CELLS] * 6
    assert int(drawn.executed_passes.max()) < 2 * 5 * CELLS - 8  # at least the common start


BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "no orders": ("orders: expected a whole number from 1 to 8, got 0", lambda: compose(EXPERTS, "hex", orders=0)),
    "too many": ("orders: expected a whole number from 1 to 8, got 9", lambda: compose(EXPERTS, "hex", orders=9)),
    "within": (
        "within: expected one of mixture, product, routing, got 'vote'",
        lambda: compose(EXPERTS, "hex", within="vote"),
    ),
    "numbers of another": (
        "temperatures: within 'mixture' takes weights, not temperatures",
        lambda: compose(EXPERTS, "hex", temperatures=[1, 2]).sample(empty(1)),
    ),
    "no text of one's own": ("beta: expected finite", lambda: HEX.build(within="product", beta=[-1.0, 1.0])),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_nonsense_is_refused(what: str) -> None:
    sentence, call = BAD[what]
    with pytest.raises(InvalidInput, match=sentence):
        call()
