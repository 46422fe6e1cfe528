"""Mosaics: four queries on a canvas and back, an expert asked about each quarter, and whose tasks they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition, Inside
from factordiff.experts.expert import take
from factordiff.experts.registry import SHIPPED
from factordiff.networks.store import build, read_config, save_expert
from factordiff.worlds.catalogue import compare_world, world
from factordiff.worlds.mosaic.canvas import (
    Quartered,
    apart,
    condition_apart,
    condition_together,
    places,
    together,
)
from factordiff.worlds.mosaic.demonstrations import demonstration_evidence
from factordiff.worlds.mosaic.mosaics import drawn_queries, mosaics, owners
from factordiff.worlds.mosaic.tasks import EXPERTS, owner_of, tasks_of, training_commands
from factordiff.worlds.mosaic.world import Mosaic
from factordiff.worlds.sides import sides
from tests.solving_experts import TINY


@pytest.fixture(scope="module")
def listed() -> EvaluationSet:
    return Dataset.load().evaluation("validation")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four networks that know nothing, in folders."""
    place = tmp_path_factory.mktemp("experts")
    for seed, name in enumerate(EXPERTS):
        save_expert(build("trans-ir", {**TINY, "head": "default"}, seed).freeze(), place / name)
    return {name: place / name for name in EXPERTS}


def test_quarters_are_where_people_see_them() -> None:
    canvas = torch.arange(2 * 400).view(2, 400)
    quarters = apart(canvas)
    grid = canvas[1].view(20, 20)
    assert (quarters[1, 0].view(10, 10) == grid[:10, :10]).all()
    assert (quarters[1, 1].view(10, 10) == grid[:10, 10:]).all()
    assert (quarters[1, 2].view(10, 10) == grid[10:, :10]).all()
    assert (quarters[1, 3].view(10, 10) == grid[10:, 10:]).all()
    assert (together(quarters) == canvas).all()
    assert sorted(places().flatten().tolist()) == list(range(400))


def test_a_mosaics_condition_is_that_of_its_quarters(listed: EvaluationSet) -> None:
    index = torch.tensor([3, 200, 7, 1000, 5, 6, 9, 11])
    small = listed.condition(index)
    large = condition_together(small)
    assert large.query.shape == (2, 400)
    back = condition_apart(large)
    for name in ("query", "context_inputs", "context_outputs", "present"):
        assert (getattr(back, name) == getattr(small, name)).all()
    assert all((one == other).all() for one, other in zip(back.inside, small.inside, strict=True))
    uneven = Condition(
        small.query, small.context_inputs, small.context_outputs, small.present.clone(), small.inside
    )
    uneven.present[1, 2] = False
    with pytest.raises(InvalidInput, match="as many demonstrations in each quarter"):
        condition_together(uneven)


def test_a_quartered_expert_says_what_it_says_of_each_quarter(listed: EvaluationSet) -> None:
    expert = build("trans-ir", {**TINY, "head": "default"}).freeze()
    index = torch.tensor([3, 200, 7, 1000])
    small = listed.condition(index)
    x_small = torch.where(torch.arange(100) % 3 == 0, listed.x_0[index], 10)
    alone = expert.log_probs(x_small, expert.encode(small))
    quartered = Quartered(expert)
    whole = quartered.log_probs(together(x_small[None]), quartered.encode(condition_together(small)))
    assert whole.shape == (1, 400, 10)
    torch.testing.assert_close(apart(whole.movedim(-1, 1))[0].movedim(1, -1), alone)


def test_a_quarter_that_did_not_change_is_not_asked_about_again(
    listed: EvaluationSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    expert = build("trans-ir", {**TINY, "head": "default"}).freeze()
    condition = condition_together(listed.condition(torch.tensor([3, 200, 7, 1000, 5, 6, 9, 11])))
    quartered, asked = Quartered(expert), []
    plain = type(expert).log_probs

    def counted(self: Any, x_t: Tensor, encoded: Any) -> Tensor:
        asked.append(len(x_t))
        return plain(self, x_t, encoded)

    monkeypatch.setattr(type(expert), "log_probs", counted)
    encoded, x_t = quartered.encode(condition), torch.full((2, 400), 10)

    def said(x_t: Tensor, items: list[int]) -> Tensor:
        """What it says with a memory, held against what it says without one."""
        rows = torch.tensor(items)
        found = quartered.log_probs(x_t, take(encoded, rows))
        alone = Quartered(expert)
        torch.testing.assert_close(found, alone.log_probs(x_t, take(alone.encode(condition), rows)))
        asked.pop()
        return found

    said(x_t, [0, 1])
    x_t[1, 399] = 3
    said(x_t, [0, 1])  # one quarter changed
    said(x_t[1:], [1])
    assert asked == [8, 1]
    x_t[0, 0] = x_t[0, 399] = 5
    said(x_t[[0, 1]], [0, 1])
    assert asked.pop() == 2
    several = x_t[[0, 0, 0]]
    several[1, 0], several[2, 50] = 6, 7  # particles of one item
    said(several, [0, 0, 0])
    assert asked.pop() == 2
    said(several[[1]], [0])
    said(several[[2]], [0])
    said(several[[0]], [0])
    later = quartered.encode(condition)
    said(x_t, [0, 1])  # of the call before: nothing is remembered, nothing mixed up
    assert asked.pop() == 8
    quartered.log_probs(x_t, later)
    assert asked.pop() == 8


def test_mosaics_are_a_pure_function_of_the_seed(listed: EvaluationSet) -> None:
    few, more = mosaics("validation", 3, listed), mosaics("validation", 9, listed)
    assert (few.x_0 == more.x_0[:3]).all()
    assert (few.owners == more.owners[:3]).all()
    other = mosaics("validation", 3, listed, seed=1)
    assert (few.x_0 != other.x_0).any()


def test_owners_are_as_they_should_be(listed: EvaluationSet) -> None:
    owner = owners("test", 6_000)
    assert (owner[::2].sort(1).values == torch.arange(4)).all()
    odd = owner[1::2]
    counts = torch.bincount(odd.flatten(), minlength=4).double()
    # 12,000 independent draws: a share's standard error is sqrt(3/16/12,000) = 0.004.
    assert ((counts / counts.sum() - 0.25).abs() < 4 * 0.004).all()
    index = drawn_queries("validation", owner[:50], listed)
    task = listed.task_indices[index.flatten()].view(50, 4)
    assert all(
        owner_of(int(one)) == int(who) for one, who in zip(task.flatten(), owner[:50].flatten(), strict=True)
    )
    assert all(len(set(row)) == 4 for row in task.tolist())
    assert len(set((index.flatten() // 120).tolist())) > 30  # any of the 40 instances


def test_each_expert_has_thirty_tasks_of_its_own(listed: EvaluationSet) -> None:
    sets = [tasks_of(number) for number in range(4)]
    assert [len(one) for one in sets] == [30] * 4
    assert sorted(task for one in sets for task in one) == sorted(listed.tasks)
    commands = training_commands()
    assert len(commands) == 4
    assert ",".join(sets[2]) in commands[2]
    assert commands[2].endswith("--out runs/mosaic-3")


def hide_one(condition: Condition, number: int) -> tuple[Condition, Tensor]:
    """The condition in which a demonstration's input is the query and the others are shown; and its output."""
    frames = condition.present.shape[1]
    others = torch.tensor([frame for frame in range(frames) if frame != number])
    inside = condition.inside
    asked = Condition(
        condition.context_inputs[:, number],
        condition.context_inputs[:, others],
        condition.context_outputs[:, others],
        condition.present[:, others],
        None
        if inside is None
        else Inside(
            inside.context_inputs[:, number],
            inside.context_inputs[:, others],
            inside.context_outputs[:, others],
        ),
    )
    return asked, condition.context_outputs[:, number]


def test_evidence_is_the_sum_over_demonstrations(listed: EvaluationSet) -> None:
    experts = [build("trans-ir", {**TINY, "head": "default"}, seed).freeze() for seed in range(2)]
    condition = listed.condition(torch.tensor([3, 200]))
    condition.present[1, 1:] = False  # the second item shows one demonstration: nothing can be hidden
    evidence, passes = demonstration_evidence(experts, condition)
    assert passes.tolist() == [6, 0]
    assert (evidence[:, 1] == 0).all()
    for number, expert in enumerate(experts):
        slow = torch.zeros(100, dtype=torch.float64)
        for frame in range(3):
            asked, output = hide_one(condition[:1], frame)
            said = expert.log_probs(torch.full((1, 100), 10), expert.encode(asked))
            slow += torch.stack([said[0, cell, int(output[0, cell])].double() for cell in range(100)])
        torch.testing.assert_close(evidence[number, 0], slow)


def test_the_world_runs_on_tiny_networks(folders: dict[str, Path]) -> None:
    mosaic = world("arc-mosaic", folders=folders)
    assert isinstance(mosaic, Mosaic)
    table = compare_world(mosaic, "mixture,demonstrations,told", limit=2, reveal="confidence:2")
    assert [row.label for row in table.rows] == ["mixture", "demonstrations", "told"]
    assert table["mixture"].passes == 2 * 4 * 4  # steps, experts, quarters
    assert table["demonstrations"].passes == 2 * 4 * 4 + 3 * 4 * 4
    assert all(0 <= row.value(measure) <= 1 for row in table.rows for measure in table.measures)


def test_what_is_earned_runs_on_tiny_networks(folders: dict[str, Path]) -> None:
    learned = "fitted:learned[steps=2;head=mixture]"
    table = compare_world(
        world("arc-mosaic", folders=folders),
        f"fitted:demonstrations,{learned}",
        limit=1,
        validation=4,
        budget=2,
        reveal="confidence:2",
    )
    assert table["fitted:demonstrations"].passes == 2 * 4 * 4 + 3 * 4 * 4
    assert "evidence_temperature" in table.about["fits"]["fitted:demonstrations"]["options"] or (
        table.about["fits"]["fitted:demonstrations"]["options"] == {}
    )
    assert (table.about["fits"][learned]["fitted on"], table.about["fits"][learned]["chosen on"]) == (3, 1)


def test_a_routers_sides_share_no_query(listed: EvaluationSet) -> None:
    some = mosaics("validation", 400, listed)
    assert some.made_of is not None
    fit, choose = sides(some)
    assert len(choose) >= 100
    assert len(fit) > 50
    assert not set(some.made_of[fit].flatten().tolist()) & set(some.made_of[choose].flatten().tolist())


def test_every_expert_was_trained_on_its_own_tasks_alone() -> None:
    for number, (name, expert) in enumerate(Mosaic().experts().experts.items()):
        assert isinstance(expert, Quartered)
        assert sorted(read_config(SHIPPED / name)["about"]["settings"]["tasks"]) == tasks_of(number)
