"""Lists and arrays that cannot be taken for tensors: one sentence for each, of the library's own kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from factordiff import (
    Engine,
    FactorWeights,
    FittingData,
    InvalidInput,
    Mixture,
    Product,
    SuperDiff,
    Vocabulary,
    components,
    compose,
    exact_law,
    log_doubt,
    majority_vote,
    margin,
    substitute,
    total_variation,
)
from tests.test_tensors import ALPHA, JOINT, LABELS, X_T, by_condition, composed, two

NAN = float("nan")
NO_NUMBERS = "expected a tensor, a numpy array or nested lists of numbers, got a"
IN_A_ROW = "expected numbers in a row, one per expert, got "
REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "ragged factors": (
        f"factors: {NO_NUMBERS} list of other things",
        lambda: composed("routing", factors=[0, [1]]),
    ),
    "factors of words": (f"factors: {NO_NUMBERS}", lambda: composed("routing", factors=["a", "b"])),
    "factors of bytes": (f"factors: {NO_NUMBERS} bytes", lambda: composed("routing", factors=b"row")),
    "factors of halves": (
        r"factors: expected whole-number labels .* got shape \(2,\) of torch.float64",
        lambda: compose(two(), factors=[0.5, 1.0]),
    ),
    "factors of NaN": ("factors: expected whole-number labels", lambda: compose(two(), factors=[NAN, 1.0])),
    "factors of flags": ("factors: expected whole-number", lambda: compose(two(), factors=[True, False])),
    "factors of a cube": (
        r"factors: expected .* of shape \(cell\) or \(item, cell\), got shape \(1, 1, 2\)",
        lambda: compose(two(), factors=[[[0, 1]]]),
    ),
    "a kernel that overlaps": (
        "factors: expected whole-number labels",
        lambda: compose(two(), "routing", factors=ALPHA),
    ),
    "a kernel of NaN": (
        "kernel: expected finite non-negative numbers",
        lambda: compose(two(), "evidence", factors=[[NAN, 0.0], [0.0, 1.0]]),
    ),
    "too many labels": (
        "partition: expected one label for each of 2 cells, got labels for 3",
        lambda: composed("routing", factors=[0, 0, 1]),
    ),
    "partition, nothing": (f"partition: {NO_NUMBERS} NoneType", lambda: FactorWeights(ALPHA, None)),
    "ragged alpha": (f"alpha: {NO_NUMBERS}", lambda: FactorWeights([[1.0], [1.0, 2.0]], LABELS)),
    "alpha of NaN": ("alpha: expected finite", lambda: FactorWeights([[NAN], [1.0]], LABELS)),
    "flat alpha": (r"alpha: expected .* got shape \(2,\)", lambda: FactorWeights([1.0, 2.0], LABELS)),
    "ragged answers": (f"answers: {NO_NUMBERS}", lambda: FittingData([[1, 2], [3]])),
    "no answers": (f"answers: {NO_NUMBERS} NoneType", lambda: FittingData(None)),
    "answers of halves": (
        "data: expected int64 answers",
        lambda: FittingData([[0.5, 1.0]]),
    ),
    "asked in numbers": (
        "data: expected asked of true and false, got torch.int64",
        lambda: FittingData(X_T, asked=[[0, 1], [1, 1]]),
    ),
    "held of words": (f"held: {NO_NUMBERS}", lambda: FittingData(X_T, held=["a", "b"])),
    "owner of halves": (
        "data: expected owner of whole numbers, got torch.float64",
        lambda: FittingData(X_T, owner=[[0.5, 1.0], [0.0, NAN]]),
    ),
    "held of three": (
        r"data: expected held of shape \(2,\), got \(3,\)",
        lambda: FittingData(X_T, held=[True] * 3),
    ),
    "a start of words": (f"start: {NO_NUMBERS} str", lambda: exact_law(two(), Mixture(), 2, start="12")),
    "a start of halves": (
        r"start: expected 2 tokens, one per cell, got shape \(2,\) of torch.float64",
        lambda: exact_law(two(), Mixture(), 2, start=[1.0, NAN]),
    ),
    "a start of three": (
        r"start: expected 2 tokens, one per cell, got shape \(3,\) of torch.int64",
        lambda: exact_law(two(), Mixture(), 2, start=np.array([1, 2, 2])),
    ),
    "tables of two shapes": (
        r"other: expected the shape of one, \(2, 2\), got \(2,\)",
        lambda: total_variation(JOINT, [0.5, 0.5]),
    ),
    "a table of NaN": (
        "other: expected a table of probabilities, got NaN",
        lambda: total_variation([0.5, 0.5], [NAN, 0.5]),
    ),
    "a law for its table": (
        f"one: {NO_NUMBERS} Law",
        lambda: total_variation(exact_law(two(), Mixture(), 2), JOINT),
    ),
    "a complex table": (
        f"one: {NO_NUMBERS} ndarray of complex128",
        lambda: total_variation(np.array([1j, 0.0]), [0.5, 0.5]),
    ),
    "ragged log_probs": (f"log_probs: {NO_NUMBERS}", lambda: margin([[[0.0], [0.0, 1.0]]])),
    "log_probs of NaN": (r"log_probs: expected .* got NaN or \+inf", lambda: log_doubt([[[NAN, 0.0]]])),
    "log_probs of no value": ("log_probs: expected log-prob.* values along the last", lambda: margin([[[]]])),
    "a flat map": (
        r"maps: expected whole numbers of shape \(item, height, width\), got torch.int64 of shape \(2,\)",
        lambda: components([0, 1]),
    ),
    "a map of NaN": ("maps: expected whole numbers", lambda: components(np.array([[[NAN, 1.0]]]))),
    "logits for two of three": (
        r"logits: expected 3 real numbers, .* got torch.float64 of shape \(1, 1, 2\)",
        lambda: substitute([[[0.0, 1.0]]], [[3]], Vocabulary(3)),
    ),
    "logits of NaN": ("logits: .*NaN", lambda: substitute([[[NAN, 1.0]]], [[2]], Vocabulary(2))),
    "tokens of halves": (
        "x_t: expected int64 tokens, got torch.float64",
        lambda: substitute([[[0.0, 1.0]]], [[0.5]], Vocabulary(2)),
    ),
    "tokens that no value is": (
        r"x_t: expected values 0 \.\. 1 or the mask 2, got -1 \.\. -1",
        lambda: substitute([[[0.0, 1.0]]], [[-1]], Vocabulary(2)),
    ),
    "flat samples": (r"samples: expected int64 tokens of shape", lambda: majority_vote([0, 1], 2)),
    "ragged condition": (f"condition: {NO_NUMBERS}", lambda: by_condition([0, [1], 1])),
    "condition of halves": (
        r"condition: expected a whole number for every item, got torch.float64 of shape \(3,\)",
        lambda: by_condition([0.0, 1.0, NAN]),
    ),
    "condition of one number": (
        "condition: expected a whole number for every item, got torch.int64 of shape",
        lambda: by_condition(np.array(1)),
    ),
    "condition for two of three": (
        "condition: expected one for each of 3 items, got .*2",
        lambda: by_condition([0, 1], Engine(batch=1)),
    ),
    "beta of words": (f"beta: {IN_A_ROW}'12'", lambda: Product("12")),
    "beta, one number": (f"beta: {IN_A_ROW}", lambda: Product(np.float64(1.0))),
    "beta, nested": (rf"beta: {IN_A_ROW}\[\[1.0\], \[2.0\]\]", lambda: Product(np.array([[1.0], [2.0]]))),
    "ragged beta": (rf"beta: {IN_A_ROW}\[1.0, \[2.0\]\]", lambda: Product([1.0, [2.0]])),
    "beta of NaN": ("beta: expected finite non-negative", lambda: Product(np.array([NAN, 1.0]))),
    "bias of words": (f"bias: {IN_A_ROW}", lambda: SuperDiff(bias=["1", "2"])),
    "beta of an array of words": (
        f"beta: {NO_NUMBERS} ndarray of",
        lambda: compose(two(), "product", beta=np.array(["1", "2"])),
    ),
    "beta, an array of three": (
        "beta: expected 2 numbers, one per expert, got 3",
        lambda: compose(two(), "product", beta=np.ones(3)),
    ),
    "beta, a tensor without axes": (
        "beta: expected a number for each expert",
        lambda: compose(two(), "product", beta=torch.tensor(1.0)),
    ),
    "beta, an array of rows": (
        "beta: expected a finite number of at least 0 for expert 1",
        lambda: compose(two(), "product", beta=np.ones((2, 1))),
    ),
    "beta, an array with NaN": (
        "beta: expected a finite number of at least 0 for expert 2, got nan",
        lambda: compose(two(), "product", beta=np.array([1.0, NAN])),
    ),
    "too large for a whole number": (
        f"start: {NO_NUMBERS} ndarray of uint64",
        lambda: exact_law(two(), Mixture(), 2, start=np.array([2**63, 1], dtype=np.uint64)),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("untyped")
def test_what_cannot_be_taken_is_one_sentence(case: str) -> None:
    sentence, call = REFUSED[case]
    with pytest.raises(InvalidInput, match=f"^{sentence}") as caught:
        call()
    assert "\n" not in str(caught.value)
