"""Numpy arrays and lists where tensors are expected: the same results, and sentences for what is no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from factordiff import TabularExpert, compare, compose, sample
from factordiff.composition.mixture import Mixture
from factordiff.errors import InvalidInput
from factordiff.fitting.data import as_data
from factordiff.sampling.given_evidence import fold_evidence
from factordiff.tensors import as_tensor

JOINT = [[0.5, 0.0], [0.0, 0.5]]
X_T = [[1, 2], [2, 0]]
KINDS = (
    torch.tensor(X_T),
    X_T,
    np.array(X_T),
    np.array(X_T, dtype=np.uint8),
    np.array(X_T, dtype=np.int32),
    tuple(map(tuple, X_T)),
)


@pytest.mark.parametrize("x_t", KINDS, ids=lambda one: f"{type(one).__name__} {getattr(one, 'dtype', '')}")
def test_every_kind_of_numbers_is_taken(x_t: Any) -> None:
    for joint in (JOINT, np.array(JOINT), torch.tensor(JOINT)):
        expert = TabularExpert(joint)
        assert sample([expert], Mixture(), x_t, items=[3, 4]).x_0.tolist() == [[1, 1], [0, 0]]
    team = compose([expert, expert], device=None)
    assert team.device == torch.device("cpu")
    assert team.sample(x_t, items=np.array([3, 4])).x_0.tolist() == [[1, 1], [0, 0]]
    scores, _ = fold_evidence([expert], x_t)
    assert scores.shape == (1, 2, 2)
    assert as_data((list(x_t) if isinstance(x_t, tuple) else x_t, None)).answers.tolist() == X_T
    assert "1.000" in compare([expert, expert], "mixture", (x_t, [[1, 1], [0, 0]])).markdown().replace(
        "100.0", "1.000"
    )


def test_an_array_is_copied_and_never_written_to() -> None:
    array = np.array(X_T)
    array.flags.writeable = False
    assert as_tensor("x_t", array).tolist() == X_T


@pytest.mark.parametrize(
    "x_t", [None, "[[1, 2]]", 7, [[1, 2], [3]], [["a"]], np.array(["a"]), {1: 2}, [[10**30]]]
)
def test_what_is_no_number_is_a_sentence(x_t: Any, untyped: None) -> None:
    with pytest.raises(
        InvalidInput, match="x_t: expected a tensor, a numpy array or nested lists of numbers, got a"
    ):
        compose([TabularExpert(JOINT)]).sample(x_t)


@pytest.mark.parametrize("x_t", [[], [1, 2], [[0.5, 1.0]], [[True, False]], np.zeros((1, 2, 3), dtype=int)])
def test_numbers_of_another_shape_or_kind_are_a_sentence(x_t: Any, untyped: None) -> None:
    with pytest.raises(InvalidInput, match="x_t: expected int64 tokens of shape"):
        compose([TabularExpert(JOINT)]).sample(x_t)
