"""Experts that see where a grid ends, and those that do not."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from factordiff import compose
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition, Inside
from factordiff.networks.network import Network
from factordiff.networks.store import build, load_expert, save_expert
from tests.networks.small_networks import BACKBONES, CONDITIONINGS, SMALL, condition, small

both = pytest.mark.parametrize("backbone", BACKBONES)


def told(rows: int, items: int = 3) -> Condition:
    """Conditions on a 4x4 canvas whose lower two rows are 0 in every grid; the query has that many rows."""
    plain = condition(items)
    upper = torch.arange(16) < 8
    grids = [part * upper for part in (plain.query, plain.context_inputs, plain.context_outputs)]
    masks = [upper.expand_as(grid) for grid in grids]
    masks[0] = (torch.arange(16) < 4 * rows).expand_as(grids[0])
    return Condition(*grids, plain.present, Inside(*masks))


def answer(network: Network, what: Condition) -> Tensor:
    return network.log_probs(torch.full((len(what), 16), 10), network.encode(what))


@both
@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_the_answer_changes_with_the_size(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning, sees_sizes=True)
    assert not torch.equal(answer(network, told(2)), answer(network, told(4)))
    for name in ("context_inputs", "context_outputs"):
        smaller = told(2)
        assert smaller.inside is not None
        masks = smaller.inside._replace(**{name: getattr(smaller.inside, name) & (torch.arange(16) < 6)})
        cut = (torch.arange(16) < 6) * getattr(smaller, name)
        same_values = dataclasses.replace(smaller, **{name: cut})
        assert not torch.equal(
            answer(network, same_values), answer(network, dataclasses.replace(same_values, inside=masks))
        )


@both
@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_who_does_not_see_sizes_answers_as_ever(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning)
    without = dataclasses.replace(told(2), inside=None)
    for rows in (2, 3, 4):
        assert torch.equal(answer(network, told(rows)), answer(network, without))


@both
def test_where_nothing_is_outside_both_see_the_same(backbone: str) -> None:
    """The network is the same function: seeing sizes changes what it reads in the padding, and nothing else."""
    plain = condition(3)
    masks = [
        torch.ones_like(part, dtype=torch.bool)
        for part in (plain.query, plain.context_inputs, plain.context_outputs)
    ]
    full = dataclasses.replace(plain, inside=Inside(*masks))
    assert torch.equal(answer(small(backbone, sees_sizes=True), full), answer(small(backbone), plain))


@both
def test_a_configuration_of_before_sees_no_sizes(backbone: str, tmp_path: Path) -> None:
    network = small(backbone)
    folder = save_expert(network, tmp_path / "old")
    file = folder / "config.json"
    config = json.loads(file.read_text())
    del config["network"]["sees_sizes"]
    file.write_text(json.dumps(config))
    loaded = load_expert(folder)
    assert not loaded.config.sees_sizes
    assert torch.equal(answer(loaded, told(2)), answer(network, told(2)).detach())


def test_a_team_may_mix_both() -> None:
    experts = {"old": small("trans-ir").freeze(), "new": small("conv-ir", sees_sizes=True).freeze()}
    drawn = compose(experts, "mixture").sample(torch.full((3, 16), 10), told(2))
    assert drawn.x_0.shape == (3, 16)


@both
def test_bad_sizes_are_sentences(backbone: str) -> None:
    network = small(backbone, sees_sizes=True)
    with pytest.raises(InvalidInput, match=r"condition: this expert sees where a grid ends.*inside=Inside"):
        network.encode(condition(3))
    wrong = told(2)
    query = wrong.query.clone()
    query[1, 13] = 4
    with pytest.raises(InvalidInput, match=r"query of item 1 has a value in cell 13.*outside the grid"):
        network.encode(dataclasses.replace(wrong, query=query))
    assert wrong.inside is not None
    with pytest.raises(InvalidInput, match=r"inside.query: expected shape \(3, 16\) \(item, cell\)"):
        dataclasses.replace(wrong, inside=wrong.inside._replace(query=wrong.inside.query[:, :9]))


@pytest.mark.usefixtures("untyped")
def test_sizes_of_another_kind_are_refused_in_a_sentence() -> None:
    """Heights and widths, a plain tuple, numbers for true and false: what a person may try first."""
    right = told(2)
    assert right.inside is not None
    for other, kind in ((torch.tensor([[2, 4]] * 3), "Tensor"), (tuple(right.inside), "tuple")):
        with pytest.raises(InvalidInput, match=rf"inside: expected Inside\(query, .*, got {kind}$"):
            dataclasses.replace(right, inside=other)  # type: ignore[arg-type]
    for mask, kind in ((right.inside.query.int(), "torch.int32"), (right.inside.query.tolist(), "list")):
        with pytest.raises(
            InvalidInput, match=rf"inside.query: expected a tensor of true and false, got {kind}$"
        ):
            dataclasses.replace(right, inside=right.inside._replace(query=mask))  # type: ignore[arg-type]


def test_indexing_and_moving_keep_the_sizes() -> None:
    whole = told(3)
    one = whole[torch.tensor([2])].to("cpu")
    assert one.inside is not None
    assert whole.inside is not None
    assert torch.equal(one.inside.query, whole.inside.query[2:])
    assert "sizes unknown" not in repr(one)
    assert "sizes unknown" in repr(condition(1))


def test_a_demonstration_left_out_takes_its_sizes_along() -> None:
    """Hidden and asked about, its input brings its own size; nothing of it stays among the others."""
    whole = told(3)
    assert whole.inside is not None
    masks = whole.inside.context_inputs.clone()
    masks[:, 1] &= torch.arange(16) < 6
    inputs = whole.context_inputs * masks
    whole = dataclasses.replace(
        whole, context_inputs=inputs, inside=whole.inside._replace(context_inputs=masks)
    )
    assert whole.inside is not None
    for frame, (asked, _, there) in enumerate(whole.leave_one_out()):
        assert there.all()
        assert asked.inside is not None
        assert torch.equal(asked.inside.query, whole.inside.context_inputs[:, frame])
        _, inputs, outputs = asked.grids(sees_sizes=True)
        _, all_inputs, all_outputs = whole.grids(sees_sizes=True)
        for found, full in ((inputs, all_inputs), (outputs, all_outputs)):
            assert (found[:, frame] == -1).all()
            others = [other for other in range(3) if other != frame]
            assert torch.equal(found[:, others], full[:, others])


@both
@pytest.mark.usefixtures("untyped")
def test_seeing_sizes_is_yes_or_no(backbone: str) -> None:
    with pytest.raises(InvalidInput, match="sees_sizes: expected true or false, got 'yes'"):
        build(backbone, {**SMALL, "sees_sizes": "yes"})
