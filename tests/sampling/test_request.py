"""Bad input gets a sentence that names the argument, what came and what was expected; and nothing is half done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.correctors import feynman_kac
from factordiff.composition.mixture import Mixture
from factordiff.composition.single import Single
from factordiff.engine.engine import Engine
from factordiff.errors import FactorDiffError, InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.toy.law import exact_law
from factordiff.vocabulary import Vocabulary
from tests.toy import CELLS, EXPERTS, MASK, empty

NAN, INF = math.nan, math.inf
TWO_JOINTS = TabularExpert(torch.full((2, 3, 3), 1 / 9), conditions=True)
TWO_VALUES = TabularExpert(torch.full((2,) * CELLS, 2.0**-CELLS))


class Speaking:
    """An expert that says whatever it is told to, from a given pass on."""

    def __init__(self, said: Callable[[Tensor], Tensor], honest_passes: int = 0) -> None:
        self.said, self.honest_passes, self.passes = said, honest_passes, 0

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(MASK)

    def encode(self, condition: Any) -> Any:
        return condition

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        self.passes += 1
        return EXPERTS[0].log_probs(x_t) if self.passes <= self.honest_passes else self.said(x_t)


def constant(*values: float) -> Callable[[Tensor], Tensor]:
    return lambda x_t: torch.tensor(values, dtype=torch.float64).log().expand(*x_t.shape, -1)


def at_one_cell(value: float) -> Callable[[Tensor], Tensor]:
    def said(x_t: Tensor) -> Tensor:
        log_p = EXPERTS[0].log_probs(x_t).clone()
        hidden = (x_t == MASK).nonzero()[-1]
        log_p[hidden[0], hidden[1], 0] = value
        return log_p

    return said


def draw(
    experts: Any = EXPERTS, composition: Any = None, x_t: Any = None, condition: Any = None, **options: Any
) -> Any:
    composition = Mixture() if composition is None else composition
    return sample(experts, composition, empty(2) if x_t is None else x_t, condition, **options)


BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    # name of the case: (how the sentence begins and what it says, the call)
    "no experts": ("experts: expected at least one expert, got none", lambda: draw([])),
    "two vocabularies": (r"experts: .*sizes \[3, 2\]", lambda: draw([EXPERTS[0], TWO_VALUES])),
    "float tokens": (r"x_t: expected int64.*got torch.float32", lambda: draw(x_t=torch.full((2, 4), 3.0))),
    "flat tokens": (
        r"x_t: expected int64.*\(item, cell\), got .*\(4,\)",
        lambda: draw(x_t=torch.full((4,), 3)),
    ),
    "no such value": (
        r"x_t: expected values 0 \.\. 2 or the mask 3, got 3 \.\. 4",
        lambda: draw(x_t=torch.tensor([[3, 3, 3, 4]])),
    ),
    "negative value": (
        r"x_t: expected values 0 \.\. 2 or the mask 3, got -1 \.\. 3",
        lambda: draw(x_t=torch.tensor([[3, 3, 3, -1]])),
    ),
    "too few cells": ("x_t: expected 4 cells, got 3", lambda: draw(x_t=empty(2, 3))),
    "sum below one": (
        r"log_probs: those of expert 2 sum to one only.*expected normalised",
        lambda: draw([EXPERTS[0], Speaking(constant(0.5, 0.3, 0.1))]),
    ),
    "sum above one": (
        "log_probs: those of expert 1 sum to one only",
        lambda: draw([Speaking(constant(0.5, 0.5, 0.5))]),
    ),
    "sum above one at one cell": (
        "log_probs: those of expert 1 sum",
        lambda: draw([Speaking(at_one_cell(0.5))]),
    ),
    "everything forbidden": (
        "log_probs: those of expert 1 sum",
        lambda: draw([Speaking(constant(0.0, 0.0, 0.0))]),
    ),
    "NaN": (
        "log_probs: those of expert 2 contain NaN at a masked cell",
        lambda: draw([EXPERTS[0], Speaking(constant(NAN, 0.5, 0.5))]),
    ),
    "NaN at one cell": (
        "log_probs: those of expert 1 contain NaN",
        lambda: draw([Speaking(at_one_cell(NAN))]),
    ),
    "NaN later": ("log_probs: those of expert 1 contain NaN", lambda: draw([Speaking(at_one_cell(NAN), 2)])),
    "NaN later, drawn": (
        "log_probs: those of expert 1 contain NaN",
        lambda: draw([Speaking(constant(NAN, NAN, NAN), 2)], temperature=1.0),
    ),
    "NaN later, corrected": (
        "log_probs: those of expert 1 contain NaN",
        lambda: draw([Speaking(constant(NAN, NAN, NAN), 2)], feynman_kac(), temperature=1.0, particles=4),
    ),
    "sum above one later": (
        "log_probs: those of expert 1 sum",
        lambda: draw([Speaking(constant(0.9, 0.9, 0.9), 3)]),
    ),
    "values missing": (
        r"experts: expert 2 returned .*\(2, 4, 2\), expected \(2, 4, 3\)",
        lambda: draw([EXPERTS[0], Speaking(constant(0.5, 0.5))]),
    ),
    "condition too short": (
        "condition: expected one for each of 2 items, got .* 1",
        lambda: draw([TWO_JOINTS], x_t=empty(2, 2), condition=torch.tensor([1])),
    ),
    "condition too long": (
        "condition: expected one for each of 2 items, got .* 3",
        lambda: draw([TWO_JOINTS], x_t=empty(2, 2), condition=torch.tensor([1, 0, 1])),
    ),
    "a composition's name": (
        "composition: expected a Composition, got 'routing'; names are for `compose",
        lambda: sample(EXPERTS, "routing", empty(2)),  # type: ignore[arg-type]
    ),
    "a rule's name": (
        "reveal: expected a RevealRule, got 'fast'; names are for `compose",
        lambda: sample(EXPERTS, Mixture(), empty(2), reveal="fast"),  # type: ignore[arg-type]
    ),
    "negative temperature": ("temperature: expected 0 .* got -1", lambda: draw(temperature=-1.0)),
    "no cells": (r"x_t: expected at least one cell, got shape \(2, 0\)", lambda: draw(x_t=empty(2, 0))),
    "a word for a temperature": ("temperature: expected 0 .* got 'hot'", lambda: draw(temperature="hot")),
    "NaN temperature": ("temperature: expected 0 .* got nan", lambda: draw(temperature=NAN)),
    "infinite temperature": ("temperature: expected 0 .* got inf", lambda: draw(temperature=INF)),
    "no particles": ("particles: expected a whole number of at least 1, got 0", lambda: draw(particles=0)),
    "half a particle": (
        "particles: expected a whole number of at least 1, got 1.5",
        lambda: draw(particles=1.5),
    ),
    "true particles": (
        "particles: expected a whole number of at least 1, got True",
        lambda: draw(particles=True),
    ),
    "resampling": ("resampling: expected a share .* got 1.5", lambda: draw(resampling=1.5)),
    "NaN resampling": ("resampling: expected a share .* got nan", lambda: draw(resampling=NAN)),
    "selection": ("selection: expected one of draw, .* got 'best'", lambda: draw(selection="best")),
    "no target to be highest": (
        "selection: 'highest-target' needs a composition with a target",
        lambda: draw(selection="highest-target"),
    ),
    "corrected argmax": (
        "temperature: a corrected composition needs drawn values",
        lambda: draw(composition=feynman_kac()),
    ),
    "seed": ("seed: expected a whole number, got 1.5", lambda: draw(seed=1.5)),
    "items": (r"items: expected 2 whole-number ids.*got shape \(3,\)", lambda: draw(items=torch.arange(3))),
    "float items": ("items: expected 2 whole-number ids", lambda: draw(items=torch.zeros(2))),
    "experts by name": (
        "experts: number 1 is 'one', expected an object with vocabulary, .* for `compose",
        lambda: sample({"one": TWO_VALUES}, Single(), empty(2)),  # type: ignore[arg-type]
    ),
    "law without experts": ("experts: expected at least one expert", lambda: exact_law([], Single(), 2)),
    "law of a bad expert": (
        "log_probs: those of expert 1 sum",
        lambda: exact_law([Speaking(constant(0.5, 0.3, 0.1))], Single(), CELLS),
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("untyped")
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    sentence, call = BAD[case]
    with pytest.raises(InvalidInput, match=f"^{sentence}") as caught:
        call()
    assert isinstance(caught.value, FactorDiffError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.usefixtures("untyped")
def test_nothing_is_asked_before_every_argument_is_checked() -> None:
    for options in (
        {"temperature": -1.0},
        {"particles": 0},
        {"items": torch.arange(5)},
        {"selection": "best"},
    ):
        expert = Speaking(constant(1 / 3, 1 / 3, 1 / 3))
        told: list[int] = []
        with pytest.raises(InvalidInput):
            sample(
                [expert],
                Mixture(),
                empty(2),
                on_step=lambda done, total, told=told: told.append(done),
                **options,
            )
        assert expert.passes == 0
        assert not told


def test_a_bad_expert_is_refused_after_its_first_pass() -> None:
    expert = Speaking(constant(0.5, 0.3, 0.1))
    told: list[int] = []
    with pytest.raises(InvalidInput):
        sample([expert], Mixture(), empty(2), on_step=lambda done, total: told.append(done))
    assert expert.passes == 1
    assert not told


def test_the_input_is_never_written_to() -> None:
    x_t = empty(3)
    before = x_t.clone()
    sample(EXPERTS, Mixture(), x_t, temperature=1.0, particles=3)
    with pytest.raises(InvalidInput):
        sample([Speaking(at_one_cell(NAN), 2)], Mixture(), x_t, reveal=ByConfidence(4))
    assert torch.equal(x_t, before)


def test_a_composition_of_ones_own_may_look_at_the_state() -> None:
    seen: list[SamplerState] = []

    class Mine(Composition):
        def __call__(self, log_probs: Tensor, state: SamplerState) -> Composed:
            seen.append(state)
            return Composed(log_probs[0])

    sample(EXPERTS, Mine(), empty(2), reveal=ByConfidence(CELLS))
    assert [int(state.masked.sum()) for state in seen] == [8, 6, 4, 2]
    assert seen[-1].log_density.shape == (2, 2, CELLS)


class Returning(Composition):
    """A composition of one's own that forgets something."""

    def __init__(self, composed: Callable[[Tensor], Any]) -> None:
        self.composed = composed

    def __call__(self, log_probs: Tensor, state: SamplerState) -> Composed:
        return self.composed(log_probs)


class Choosing(RevealRule):
    """A rule of one's own that takes what it likes."""

    def __init__(self, chosen: Callable[[Tensor], Any]) -> None:
        self.chosen = chosen

    def candidates(self, state: SamplerState) -> Tensor:
        return state.masked

    def choose(self, posterior: Any, candidates: Tensor, state: SamplerState) -> Tensor:
        return self.chosen(candidates)


OF_ONES_OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "no Composed": (
        "composition: Returning returned a Tensor, expected Composed",
        {"composed": lambda p: p[0]},
    ),
    "of every expert": ("composition: Returning returned .* shape \\(1, 2, 4, 3\\)", {"composed": Composed}),
    "not normalised": (
        "composition: .* Returning do not sum to one .* e\\^1.1\\); end with .log_softmax",
        {"composed": lambda p: Composed(2 * p[0])},
    ),
    "no numbers": ("composition: .* do not sum to one .*nan", {"composed": lambda p: Composed(p[0] * NAN)}),
    "no choice": ("reveal: Choosing.choose chose none of a row's", {"chosen": torch.zeros_like}),
    "given cells": ("reveal: Choosing.choose chose cells that are none", {"chosen": torch.ones_like}),
    "numbers of cells": (
        "reveal: .* returned torch.int64 of shape \\(2,\\)",
        {"chosen": lambda c: c.sum(-1)},
    ),
    "nothing": ("reveal: .* returned None, expected true and false", {"chosen": lambda c: None}),
}


@pytest.mark.parametrize("case", OF_ONES_OWN)
@pytest.mark.usefixtures("untyped")
def test_what_is_wrong_with_a_part_of_ones_own_is_a_sentence(case: str) -> None:
    sentence, part = OF_ONES_OWN[case]
    composition: Composition = Returning(part["composed"]) if "composed" in part else Mixture()
    rule: RevealRule = Choosing(part["chosen"]) if "chosen" in part else ByConfidence(4)
    x_t = empty(2)
    x_t[:, 0] = 1
    uniform = Speaking(constant(1 / 3, 1 / 3, 1 / 3))
    for loop in (sample, Engine().sample):
        with pytest.raises(InvalidInput, match=f"^{sentence}"):
            loop([uniform], composition, x_t, reveal=rule)
