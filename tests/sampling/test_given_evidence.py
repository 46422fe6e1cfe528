"""Scores of given cells against loops over conditionals; what they cost; whose folds they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.given_evidence import chain_rule_evidence, dealt, fold_evidence
from tests.enumeration import conditional, put
from tests.toy import CELLS, EXPERTS, MASK, states

TABLES = [np.random.default_rng(seed).dirichlet(np.full(81, 0.3), size=2) for seed in (4, 5, 6)]
JOINTS = [table.reshape(2, 3, 3, 3, 3) for table in TABLES]
TOLD = [TabularExpert(torch.from_numpy(table), conditions=True) for table in JOINTS]
ITEMS = 24
X_T = states(7, ITEMS, CELLS, MASK, hidden=0.4)
X_T[0], X_T[1] = MASK, 1  # nothing given; everything
CONDITION = torch.arange(ITEMS) % 2
GIVEN = X_T != MASK


def scored(visible: Any) -> np.ndarray:
    """What every expert says of every given cell while `visible(item, cell)` is what it sees: a loop."""
    out = np.zeros((len(TOLD), ITEMS, CELLS))
    for m, item, cell in np.ndindex(*out.shape):
        x = tuple(X_T[item].tolist())
        if x[cell] == MASK:
            continue
        for other in range(CELLS):
            if other not in visible(item, cell):
                x = put(x, other, MASK)
        out[m, item, cell] = math.log(conditional(JOINTS[m][item % 2], x, cell)[int(X_T[item, cell])])
    return out


def given_cells(item: int) -> list[int]:
    return GIVEN[item].nonzero().flatten().tolist()


def test_the_chain_rule_is_the_loop_and_adds_up_to_the_density() -> None:
    found, passes = chain_rule_evidence(TOLD, X_T, CONDITION)
    expected = scored(lambda item, cell: [other for other in given_cells(item) if other < cell])
    assert np.allclose(found, expected, rtol=0, atol=1e-12)
    assert (found[:, ~GIVEN] == 0).all()
    assert torch.equal(passes, len(TOLD) * GIVEN.sum(-1))
    density = torch.stack([expert.log_density(X_T, CONDITION) for expert in TOLD])
    assert torch.allclose(found.sum(-1), density, rtol=0, atol=1e-12)


@pytest.mark.parametrize("folds", [1, 2, 4, 9])
def test_a_fold_is_scored_while_it_is_hidden(folds: int) -> None:
    found, passes = fold_evidence(TOLD, X_T, CONDITION, folds=folds, seed=3)
    fold = dealt(GIVEN, "folds", folds, 3, None)
    expected = scored(lambda item, cell: [c for c in given_cells(item) if fold[item, c] != fold[item, cell]])
    assert np.allclose(found, expected, rtol=0, atol=1e-12)
    assert (found[:, ~GIVEN] == 0).all()
    assert torch.equal(passes, len(TOLD) * GIVEN.sum(-1).clamp(max=folds))


@pytest.mark.parametrize("parts", [1, 2, 4, 9])
def test_a_part_is_scored_given_the_parts_before_it(parts: int) -> None:
    found, passes = chain_rule_evidence(TOLD, X_T, CONDITION, parts=parts, seed=3)
    part = dealt(GIVEN, "parts", parts, 3, None)
    expected = scored(lambda item, cell: [c for c in given_cells(item) if part[item, c] < part[item, cell]])
    assert np.allclose(found, expected, rtol=0, atol=1e-12)
    assert torch.equal(passes, len(TOLD) * GIVEN.sum(-1).clamp(max=parts))
    if parts >= CELLS:
        density = torch.stack([expert.log_density(X_T, CONDITION) for expert in TOLD])
        assert torch.allclose(found.sum(-1), density, rtol=0, atol=1e-12)


def test_parts_are_equal_and_belong_to_item_and_cell() -> None:
    given = states(8, 40, 30, 2, hidden=0.5) != 2
    ids = torch.arange(40) * 3
    part = dealt(given, "folds", 4, 0, ids)
    for row in range(40):
        sizes = torch.bincount(part[row][given[row]], minlength=4)
        assert int(sizes.max() - sizes.min()) <= 1
    some = torch.tensor([7, 2, 30])
    assert torch.equal(dealt(given[some], "folds", 4, 0, ids[some])[given[some]], part[some][given[some]])
    assert not torch.equal(dealt(given, "folds", 4, 1, ids)[given], part[given])
    assert len({tuple(row) for row in dealt(torch.ones(40, 30) > 0, "folds", 4, 0, ids).tolist()}) == 40


def test_items_are_scored_alike_in_any_batch() -> None:
    ids = 50 - torch.arange(ITEMS)
    for score in (fold_evidence, chain_rule_evidence):
        together, passes = score(TOLD, X_T, CONDITION, items=ids)
        some = torch.tensor([9, 1, 4])
        alone, spent = score(TOLD, X_T[some], CONDITION[some], items=ids[some])
        assert torch.equal(alone, together[:, some])
        assert torch.equal(spent, passes[some])


class Counting(TabularExpert):
    """Counts the rows it is asked about."""

    asked = 0

    def log_probs(self, x_t: Tensor, encoded: Any = None) -> Tensor:
        assert len(x_t)  # networks need not know what to do with no rows
        self.asked += len(x_t)
        return super().log_probs(x_t, encoded)


def test_passes_are_what_was_asked() -> None:
    for score in (fold_evidence, chain_rule_evidence):
        expert = Counting(torch.from_numpy(JOINTS[0][0]))
        _, passes = score([expert], X_T)
        assert expert.asked == int(passes.sum()) > 0
        nothing, passes = score([expert], torch.full((2, CELLS), MASK))
        assert (nothing == 0).all()
        assert (passes == 0).all()


def test_values_that_an_expert_rules_out_are_minus_infinity() -> None:
    coin = TabularExpert(torch.tensor([[0.5, 0.0], [0.0, 0.5]]))  # two cells, always equal
    found, _ = chain_rule_evidence([coin], torch.tensor([[0, 1], [1, 1]]))
    assert found[0].tolist() == [[math.log(0.5), -math.inf], [math.log(0.5), 0.0]]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: fold_evidence([], X_T), "experts: expected at least one expert, got none"),
        (lambda: fold_evidence(EXPERTS, X_T, folds=0), "folds: expected a whole number of at least 1, got 0"),
        (lambda: fold_evidence(EXPERTS, X_T, folds=2.0), r"folds: expected a whole number .*, got 2\.0"),
        (lambda: fold_evidence(EXPERTS, X_T, seed=0.5), r"seed: expected a whole number, got 0\.5"),
        (
            lambda: fold_evidence(EXPERTS, X_T, items=torch.arange(3)),
            r"items: expected 24 whole-number ids, one per item, got shape \(3,\)",
        ),
        (lambda: chain_rule_evidence(EXPERTS, X_T, parts=0), "parts: expected a whole number of at least 1"),
        (lambda: chain_rule_evidence(EXPERTS, X_T + 1), r"x_t: expected values 0 \.\. 2 or the mask 3, got"),
        (lambda: chain_rule_evidence(EXPERTS, X_T[0]), r"x_t: expected int64 tokens of shape \(item, cell\)"),
        (
            lambda: chain_rule_evidence(TOLD, X_T, CONDITION[:5]),
            "condition: expected one for each of 24 items",
        ),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_bad_input_is_named_in_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()
