"""Whatever a person prints says in a line what it is."""

from __future__ import annotations

import re

import pytest
import torch

import factordiff
from factordiff import (
    Ancestral,
    BatchSizes,
    ByBlock,
    ByConfidence,
    ByEntropy,
    ByMargin,
    ByProduct,
    Condition,
    DrawnExpert,
    Engine,
    Evidence,
    FactorWeights,
    FastNetwork,
    FitReport,
    FittingData,
    GeometricMean,
    HardViews,
    Inside,
    Learned,
    MaskedLanguageModel,
    Mixture,
    Product,
    Queries,
    Repaired,
    Router,
    Routing,
    SamplerState,
    Single,
    SoftRouting,
    SuperDiff,
    SuperDiffAnd,
    TabularExpert,
    Views,
    Vocabulary,
    compare,
    compose,
    exact_law,
    feynman_kac,
    rne,
)  # fmt: skip
from factordiff.composition.factors import rows
from factordiff.composition.router import RouterConfig
from factordiff.fitting.report import Score, Trial
from factordiff.networks.store import build
from factordiff.solving.answer import Refusal
from factordiff.solving.solver import solve
from tests.solving_experts import TINY, halves, task

# Protocols, abstract classes and errors; a diagnosis takes a fit (tests/fitting/test_diagnosis.py prints one).
NOT_PRINTED = {"Composition", "Diagnosis", "Expert", "FactorDiffError", "InvalidInput", "RevealRule"}


def told(*frames: int) -> Condition:
    """An item of four cells for each number, with so many demonstrations of three."""
    grids = torch.zeros(len(frames), 3, 4, dtype=torch.int64)
    present = torch.arange(3) < torch.tensor(frames, dtype=torch.int64)[:, None]
    return Condition(grids[:, 0], grids, grids, present)


@pytest.fixture(scope="module")
def things() -> list[object]:
    expert = TabularExpert(torch.full((2, 2), 0.25))
    state = SamplerState.begin(torch.full((2, 4), 2), 2, 2)
    said = torch.full((2, 2, 4, 2), 0.5).log()
    answers = solve(task(), compose(halves(), reveal=ByConfidence(8)))
    explanation = answers[0].explain()
    trace = answers[0].trace
    assert trace is not None
    return [
        Ancestral(4), ByConfidence(4), ByMargin(0.9), ByEntropy(0.1), ByProduct(0.9), Repaired(ByMargin(0.9)),
        ByBlock(), BatchSizes(8), Engine(), Vocabulary(3), expert, state, Routing()(said, state),
        Single(), Mixture(), DrawnExpert(), Product(), GeometricMean(), SuperDiff(), SuperDiffAnd(),
        feynman_kac(), rne(),
        Routing(), SoftRouting(), FactorWeights(torch.eye(2), rows(2, 2)), Views(), HardViews(),
        Learned(), Router.new(RouterConfig(2, 3)), FittingData(torch.zeros(4, 2, dtype=torch.int64)),
        FitReport("weights", "mixture", (Trial({"weights": (1.0, 4.0)}, Score(0.5, 0.9)),), 0, 0, 4),
        Evidence(), Evidence(rows(2, 2), evidence=torch.zeros(2, 2, 4)), Evidence(kernel=torch.ones(4, 4)),
        exact_law([expert, expert], Mixture(), 2), FastNetwork(build("trans-ir", TINY)),
        MaskedLanguageModel(print, [1, 2], 0), answers[0].team, answers, *answers, answers[0].routing,
        answers[0].alone[0], explanation, explanation.decisions[0], trace, trace.steps[0], answers[0].samples,
        compare({"one": expert}, "alone", (state.x_t[:, :2], torch.zeros(2, 2, dtype=torch.int64))),
        Queries(state.x_t, torch.zeros_like(state.x_t), ("a", "b")),
        task(), task().tests[0], Refusal("a", "too large"), told(2, 3),
        Inside(torch.ones(2, 4).bool(), torch.ones(2, 3, 4).bool(), torch.ones(2, 3, 4).bool()),
        build("trans-ir"), build("conv-ir"),
    ]  # fmt: skip


def test_each_says_what_it_is_in_a_line(things: list[object]) -> None:
    for thing in things:
        shown = repr(thing)
        assert shown.startswith(type(thing).__name__), shown
        assert not re.search(r"object at 0x|tensor\(", shown), shown
        assert len(shown) < 250, shown
        assert "\n" not in shown, shown


def test_every_public_class_is_among_them(things: list[object]) -> None:
    public = {name for name in factordiff.__all__ if isinstance(getattr(factordiff, name), type)}
    kinds = {parent.__name__ for thing in things for parent in type(thing).__mro__}
    assert public - NOT_PRINTED <= kinds, public - NOT_PRINTED - kinds


def test_numbers_are_the_things_own(things: list[object]) -> None:
    found = {type(thing).__name__: repr(thing) for thing in things}
    assert found["Trace"] == "Trace(1 items of 100 cells, 1 particles, 8 steps)"
    assert found["TraceStep"] == "TraceStep(1 items, 12 cells revealed)"
    assert found["Law"] == "Law(4 outcomes of 2 cells with 2 values)"
    assert found["SamplerState"] == "SamplerState(2 rows of 4 cells, 8 of them masked)"
    assert found["Composed"] == "Composed(2 rows of 4 cells with 2 values, with routing, with log_doubt)"
    assert found["FastNetwork"] == "FastNetwork(TransIR, eager)"


def test_a_condition_counts_what_is_there() -> None:
    assert (
        repr(told(2, 3, 1)) == "Condition(3 items of 4 cells, 1 to 3 demonstrations each, sizes unknown, cpu)"
    )
    assert repr(told(2, 2)) == "Condition(2 items of 4 cells, 2 demonstrations each, sizes unknown, cpu)"
    assert repr(told()) == "Condition(0 items of 4 cells, 0 demonstrations each, sizes unknown, cpu)"


@pytest.mark.parametrize(("backbone", "kind"), [("trans-ir", "TransIR"), ("conv-ir", "ConvIR")])
def test_a_network_says_what_it_is_and_in_what_state(backbone: str, kind: str) -> None:
    network = build(backbone, {"layout": [4, 6], "conditioning": "paper", "cycles": [1, 3]})
    size = f"{kind}({network.layout.count:,} parameters, 4x6 cells, "
    assert repr(network) == f"{size}conditioning='paper', cycles=(1, 3), trainable, float32, cpu)"
    other = network.freeze(torch.bfloat16).with_cycles(2, 2)
    assert repr(other) == f"{size}conditioning='paper', cycles=(2, 2), frozen, bfloat16, cpu)"
