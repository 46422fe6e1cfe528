"""Compositions that make no sense are refused with a sentence that names the argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.correctors import Corrected, feynman_kac, rne
from factordiff.composition.evidence import Evidence
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import Product
from factordiff.composition.routing import FactorWeights, Routing, SoftRouting
from factordiff.composition.single import Single
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from factordiff.composition.views import Views
from factordiff.errors import InvalidInput
from factordiff.experts.forward import refuse, sum_error
from factordiff.vocabulary import Vocabulary
from tests.toy import log_probs, state

NAN, INF = math.nan, math.inf
ONE_FACTOR = torch.zeros(4, dtype=torch.int64)


def compose(composition: Composition, experts: int = 2, values: int = 3) -> Composed:
    here = state(torch.full((2, 4), values), values, torch.zeros(experts, 2, dtype=torch.float64))
    return composition(log_probs(0, experts, 2, 4, values), here)


BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "negative beta": (
        r"beta: expected finite non-negative numbers.*got \[1.0, -0.5\]",
        lambda: Product([1.0, -0.5]),
    ),
    "negative beta, fkc": ("beta: expected finite non-negative", lambda: feynman_kac([-1.0, 1.0])),
    "negative beta, rne": ("beta: expected finite non-negative", lambda: rne([-1.0, 1.0])),
    "NaN beta": ("beta: expected finite non-negative", lambda: Corrected(Mixture(), [NAN, 1.0])),
    "infinite beta": ("beta: expected finite non-negative", lambda: Product([INF])),
    "one beta for two": ("beta: expected 2 numbers, one per expert, got 1", lambda: compose(Product([1.0]))),
    "one beta for two, rne": (
        "beta: expected 2 numbers, one per expert, got 1",
        lambda: rne([1.0]).target(2),
    ),
    "negative weights": ("weights: expected finite non-negative", lambda: Mixture([-1.0, 2.0])),
    "no weight": ("weights: expected at least one positive weight", lambda: Mixture([0.0, 0.0])),
    "no weight, superdiff": ("weights: expected at least one positive weight", lambda: SuperDiff([0.0, 0.0])),
    "weights for three": (
        "weights: expected 2 numbers, one per expert, got 3",
        lambda: compose(Mixture([1.0, 1.0, 1.0])),
    ),
    "NaN bias": (
        r"bias: expected finite numbers, one per expert, got \[nan, 0.0\]",
        lambda: SuperDiff(bias=[NAN, 0.0]),
    ),
    "bias for three": (
        "bias: expected 2 numbers, one per expert, got 3",
        lambda: compose(SuperDiff(bias=[0.0, 0.0, 0.0])),
    ),
    "kappa temperature": (
        "temperature: expected a finite non-negative number, got -1",
        lambda: SuperDiff(temperature=-1.0),
    ),
    "form": ("form: expected 'geometric' or 'linear', got 'both'", lambda: SuperDiffAnd("both")),
    "linear for three": (
        "form: 'linear' is for two experts, got 3",
        lambda: compose(SuperDiffAnd("linear"), experts=3),
    ),
    "T of zero": (
        r"temperatures: expected finite positive numbers.*got \[1.0, 0.0\]",
        lambda: Routing(temperatures=[1.0, 0.0]),
    ),
    "negative T": ("temperatures: expected finite positive", lambda: SoftRouting(temperatures=[-1.0])),
    "NaN T": ("temperatures: expected finite positive", lambda: Routing(temperatures=[NAN])),
    "T beyond single precision": ("temperatures: expected 0 or a size", lambda: Routing(temperatures=[1e39])),
    "T too small for it": ("temperatures: expected 0 or a size", lambda: Routing(temperatures=[1e-46])),
    "weights too small for it": ("weights: expected 0 or a size", lambda: Mixture([1e-308, 1e-308])),
    "bias beyond it": ("bias: expected 0 or a size", lambda: SuperDiff(bias=[-1e308, 0.0])),
    "one T for two": (
        "temperatures: expected 2 numbers, one per expert, got 1",
        lambda: compose(Routing(temperatures=[1.0])),
    ),
    "aggregate": (
        "aggregate: expected one of mean, min, sum-log, got 'max'",
        lambda: Routing(aggregate="max"),
    ),
    "order": ("order: expected 'raw' or 'tempered', got 'other'", lambda: Routing(order="other")),
    "softness": ("softness: expected a finite positive number, got 0", lambda: SoftRouting(0.0)),
    "soft form": ("form: expected 'geometric' or 'linear', got 'x'", lambda: SoftRouting(form="x")),
    "labels": (
        "partition: expected one label for each of 4 cells, got labels for 5",
        lambda: compose(Routing(torch.zeros(5, dtype=torch.int64))),
    ),
    "float labels": ("partition: expected whole-number labels", lambda: compose(Routing(torch.zeros(4)))),
    "labels beyond": (
        r"partition: expected labels in 0 \.\. 3, got 0 \.\. 9",
        lambda: compose(SoftRouting(partition=torch.tensor([0, 0, 0, 9]))),
    ),
    "alpha negative": (
        "alpha: expected finite non-negative weights",
        lambda: FactorWeights(torch.tensor([[-1.0]]), ONE_FACTOR),
    ),
    "alpha NaN": (
        "alpha: expected finite non-negative weights",
        lambda: FactorWeights(torch.tensor([[NAN]]), ONE_FACTOR),
    ),
    "alpha flat": (
        r"alpha: expected .*\(expert, factor\), got shape \(2,\)",
        lambda: FactorWeights(torch.ones(2), ONE_FACTOR),
    ),
    "alpha all zero": (
        "alpha: expected a positive weight for some expert in every factor",
        lambda: FactorWeights(torch.zeros(2, 1), ONE_FACTOR, "linear"),
    ),
    "alpha for three": (
        "alpha: expected weights for 2 experts, got 3",
        lambda: compose(FactorWeights(torch.ones(3, 1), ONE_FACTOR)),
    ),
    "alpha for one factor": (
        "alpha: expected weights for 2 factors .*got 1",
        lambda: compose(FactorWeights(torch.ones(2, 1), torch.tensor([0, 0, 1, 1]))),
    ),
    "evidence, labels": (
        "partition: expected one label for each of 4 cells, got labels for 5",
        lambda: compose(Evidence(torch.zeros(5, dtype=torch.int64))),
    ),
    "evidence, both": (
        "partition, kernel: expected one of them, got both; the kernel says which cells belong together",
        lambda: Evidence(ONE_FACTOR, kernel=torch.ones(4, 4)),
    ),
    "evidence, negative kernel": (
        "kernel: expected finite non-negative numbers, got a negative or non-finite one",
        lambda: Evidence(kernel=-torch.eye(4)),
    ),
    "evidence, NaN kernel": (
        "kernel: expected finite non-negative numbers",
        lambda: Evidence(kernel=torch.full((4, 4), NAN)),
    ),
    "evidence, oblong kernel": (
        r"kernel: expected shape \(cell, cell\), got shape \(4, 3\)",
        lambda: Evidence(kernel=torch.ones(4, 3)),
    ),
    "evidence, small kernel": (
        r"kernel: expected shape \(4, 4\), as there are 4 cells, got shape \(3, 3\)",
        lambda: compose(Evidence(kernel=torch.ones(3, 3))),
    ),
    "evidence, T of zero": (
        r"temperature: expected a finite positive number, got 0\.0",
        lambda: Evidence(temperature=0.0),
    ),
    "evidence, NaN T": (
        "temperature: expected a finite positive number, got nan",
        lambda: Evidence(temperature=NAN),
    ),
    "evidence, infinite T": ("temperature: expected a finite positive", lambda: Evidence(temperature=INF)),
    "evidence, no weight": (
        "weights: expected at least one positive weight",
        lambda: Evidence(weights=[0.0]),
    ),
    "evidence, bias": ("bias: expected finite numbers", lambda: Evidence(bias=[INF])),
    "evidence, bias for three": (
        "bias: expected 2 numbers, one per expert, got 3",
        lambda: compose(Evidence(bias=[0.0, 0.0, 0.0])),
    ),
    "evidence, flat": (
        r"evidence: expected shape \(expert, item, cell\), got shape \(2, 4\)",
        lambda: Evidence(evidence=torch.zeros(2, 4)),
    ),
    "evidence, NaN": (
        r"evidence: expected log-probabilities \(finite or -inf\), got NaN or \+inf",
        lambda: Evidence(evidence=torch.full((2, 2, 4), NAN)),
    ),
    "evidence, +inf": (
        "evidence: expected log-probabilities",
        lambda: Evidence(evidence=torch.full((2, 2, 4), INF)),
    ),
    "evidence for three": (
        r"evidence: expected \(expert, item, cell\) with 2 experts and 4 cells, got shape \(3, 2, 4\)",
        lambda: compose(Evidence(evidence=torch.zeros(3, 2, 4))),
    ),
    "evidence of five cells": (
        r"evidence: expected .* with 2 experts and 4 cells, got shape \(2, 2, 5\)",
        lambda: compose(Evidence(evidence=torch.zeros(2, 2, 5))),
    ),
    "evidence of one item": (
        "evidence: expected some for every item, got 1 items and an item of number 1",
        lambda: compose(Evidence(evidence=torch.zeros(2, 1, 4))),
    ),
    "expert index": ("expert: expected an index below 2, got 2", lambda: compose(Single(2))),
    "negative expert": ("expert: expected the index of an expert", lambda: Single(-1)),
    "view index": ("color: expected the index of one of 2 experts, got 2", lambda: compose(Views(0, 2))),
    "view of one value": ("views: expected at least two values", lambda: compose(Views(), values=1)),
    "vocabulary": ("size: expected a whole number of at least 1, got 0", lambda: Vocabulary(0)),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("untyped")
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    sentence, call = BAD[case]
    with pytest.raises(InvalidInput, match=f"^{sentence}"):
        call()


def test_only_masked_cells_need_be_distributions() -> None:
    log_p = log_probs(0, 1, 2, 3, 4)
    log_p[0, 0, 1] = NAN
    masked = torch.ones(2, 3, dtype=torch.bool)
    masked[0, 1] = False
    refuse(sum_error(log_p, masked))
    masked[0, 1] = True
    with pytest.raises(InvalidInput, match="log_probs: those of expert 1 contain NaN"):
        refuse(sum_error(log_p, masked))
