"""TIE on the loop: against a relay written down step by step, and what it is at its two ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.method import spec
from factordiff.engine.decode import decode
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByMargin, ByProduct, Repaired
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.path import decided_by, path_steps
from factordiff.sampling.relay import Relayed
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.team.team import compose
from tests.engine.test_engine import TOLD, VARIANTS, differences
from tests.toy import CELLS, EXPERTS, MASK, P_1, P_2, P_3, empty, states

TIE = spec("tie")
THREE: list[Expert] = [TabularExpert(torch.from_numpy(table)) for table in (P_1, P_2, P_3)]


def some(items: int) -> Tensor:
    return states(11, items, CELLS, MASK, hidden=0.9)


def margins(expert: Expert, x: list[int]) -> tuple[list[float], list[int]]:
    """The margin and the likeliest value of every cell, by hand."""
    rows = expert.log_probs(torch.tensor([x]), None)[0].exp().tolist()
    top = [sorted(row)[-2:] for row in rows]
    return [second - first for first, second in top], [row.index(max(row)) for row in rows]


def slow_relay(experts: Sequence[Expert], start: list[int], every: int) -> list[int]:
    """One cell a step, the surest; every so often all go on from the surest trajectory."""
    hidden = [cell for cell, value in enumerate(start) if value == MASK]
    rows = [list(start) for _ in experts]
    committed: list[dict[int, float]] = [{} for _ in experts]
    for step in range(1, len(hidden) + 1):
        sure = []
        for row, expert, done in zip(rows, experts, committed, strict=True):
            margin, best = margins(expert, row)
            cell = max(
                (cell for cell in hidden if row[cell] == MASK), key=lambda c: (round(margin[c], 12), -c)
            )
            row[cell], done[cell] = best[cell], margin[cell]
            sure.append(sum(done.get(c, margin[c]) for c in hidden))
        if step % every == 0 or step == len(hidden):
            winner = max(range(len(experts)), key=lambda k: (round(sure[k], 12), -k))
            rows = [list(rows[winner]) for _ in experts]
            committed = [dict(committed[winner]) for _ in experts]
    return rows[0]


@pytest.mark.parametrize("every", [1, 2, 3, 4])
@pytest.mark.parametrize("number", [2, 3])
def test_it_is_the_relay_that_was_written_down(number: int, every: int) -> None:
    x_t, experts = some(40), THREE[:number]
    drawn = compose(experts, "tie", every=every, reveal="exact").sample(x_t)
    assert drawn.x_0.tolist() == [slow_relay(experts, row, every) for row in x_t.tolist()]


def test_without_relays_on_the_way_the_surest_run_is_the_answer() -> None:
    x_t = some(40)
    team = compose(THREE, "tie", every=100, reveal="exact")
    runs = [team.alone(number).sample(x_t).x_0.tolist() for number in range(3)]
    for item, answer in enumerate(team.sample(x_t).x_0.tolist()):
        assert answer in [run[item] for run in runs]


def test_relays_matter() -> None:
    x_t = empty(1)
    answers = {
        every: compose(THREE, "tie", every=every, reveal="exact").sample(x_t).x_0.tolist()
        for every in (1, 2, 9)
    }
    assert len({str(answer) for answer in answers.values()}) > 1, answers


def test_one_and_the_same_expert_relays_to_itself() -> None:
    twice = compose([EXPERTS[0]] * 2, "tie", every=2).sample(some(20))
    assert torch.equal(twice.x_0, compose(EXPERTS[:1], "single").sample(some(20)).x_0)


def test_permuting_the_experts_changes_nothing_but_ties() -> None:
    one, other = (compose(list(some_), "tie", every=2).sample(some(40)) for some_ in (THREE, THREE[::-1]))
    assert torch.equal(one.x_0, other.x_0)


RULES: list[RevealRule] = [
    ByConfidence(4), ByConfidence(2), ByConfidence(9), ByMargin(0.4), ByProduct(0.6), Ancestral(3), ByBlock(2, 2),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_savings_and_batches_change_nothing(rule: RevealRule) -> None:
    how = TIE.method({"every": 2}, ["full"] * 3)
    x_t, condition = some(9), torch.arange(9) % 2
    asked: dict[str, Any] = {"reveal": rule, "seed": 2, "items": 3 + torch.arange(9)}
    plain = decode(how, TOLD, x_t, condition, **asked, engine=Engine(share=False))
    assert int(plain.x_0.max()) < MASK
    assert (plain.particles == plain.x_0[:, None]).all()  # the last relay: all have the answer
    given = x_t != MASK
    assert torch.equal(plain.x_0[given], x_t[given])
    for variant in VARIANTS.values():
        assert not differences(decode(how, TOLD, x_t, condition, **asked, engine=variant), plain)
    alone = decode(how, TOLD, x_t[4:5], condition[4:5], reveal=rule, seed=2, items=torch.tensor([7]))
    assert torch.equal(alone.x_0[0], plain.x_0[4])


def test_the_trace_follows_the_baton() -> None:
    """Going back from the answer one meets whoever filled each cell, and every cell once."""
    for start in some(12):
        drawn = compose(THREE, "tie", every=2, reveal="exact").sample(start[None], trace=True)
        steps = path_steps(drawn)
        revealed = [cell for step in steps for cell in step.revealed]
        assert sorted(revealed) == (start == MASK).nonzero().flatten().tolist()
        owners = decided_by(drawn)
        if owners is None:
            assert not revealed
            continue
        for step in steps:
            for cell in step.revealed:
                _, best = margins(THREE[owners[cell]], step.before)
                assert step.after[cell] == best[cell] == int(drawn.x_0[0, cell])


def test_densities_belong_to_the_answer() -> None:
    """What each expert thought of the answer's cells along the path that was relayed, not of what was dropped."""
    drawn = compose(THREE, "tie", every=2, reveal="exact").sample(some(12), trace=True)
    for item in range(12):
        expected = [0.0] * 3
        for step in path_steps(drawn, item):
            for number, expert in enumerate(THREE):
                said = expert.log_probs(torch.tensor([step.before]), None)[0]
                expected[number] += sum(float(said[cell, step.after[cell]]) for cell in step.revealed)
        assert drawn.log_density[:, item, 0].tolist() == pytest.approx(expected)


def test_passes_are_those_of_every_expert_on_every_trajectory_but_equal_ones() -> None:
    each, often = (compose(EXPERTS, "tie", every=every, reveal="exact").sample(empty(2)) for every in (9, 1))
    assert each.nominal_passes.tolist() == often.nominal_passes.tolist() == [2 * 2 * CELLS] * 2
    assert (
        often.executed_passes.tolist() == [2 * CELLS] * 2
    )  # after every relay there is one state to ask about
    assert int(each.executed_passes.min()) > 2 * CELLS


BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "never": ("every: expected a whole number from 1 to 100000, got 0", lambda: compose(EXPERTS, "tie", every=0)),
    "half a step": ("every: expected a whole number", lambda: compose(EXPERTS, "tie", every=1.5)),
    "a rule's own": ("every: expected a whole number of at least 1", lambda: Relayed(ByConfidence(), 0)),
    "one expert": ("method: 'tie' takes at least 2 experts, got 1", lambda: compose(EXPERTS[:1], "tie")),
    "repairs": (
        "reveal: Repaired.* takes cells back, and so does a relay",
        lambda: compose(EXPERTS, "tie", reveal=Repaired(ByMargin(0.4))).sample(empty(1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_nonsense_is_refused(what: str) -> None:
    sentence, call = BAD[what]
    with pytest.raises(InvalidInput, match=sentence):
        call()
