"""One expert drawn per cell and step: in law the plain mixture, whatever the order and however many cells a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.correctors import Corrected
from factordiff.composition.drawn_expert import DrawnExpert
from factordiff.composition.emission import drawn_speakers
from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import routed
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByMargin, ByProduct
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.team.team import compose
from factordiff.toy.law import exact_law
from tests.enumeration import ancestral_law, mixed, tv
from tests.toy import (
    CELLS,
    EXPERTS,
    MASK,
    P_1,
    P_2,
    P_3,
    ROUNDING,
    WORLD,
    assert_drawn_from,
    empty,
    law_of,
    log_probs,
)

OMEGA = [0.3, 0.7]
THREE = [TabularExpert(torch.from_numpy(table)) for table in (P_1, P_2, P_3)]
RULES: list[RevealRule] = [ByConfidence(4), ByConfidence(2), ByMargin(0.4), ByProduct(0.6), ByBlock(2, 1)]


def law(experts: list[TabularExpert], composition: Composition, **options: Any) -> Any:
    return exact_law(experts, composition, CELLS, **options).distribution().numpy()


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_its_law_is_the_mixtures(rule: RevealRule) -> None:
    assert tv(law_of(DrawnExpert(OMEGA), reveal=rule), law_of(Mixture(OMEGA), reveal=rule)) < ROUNDING
    three = [0.2, 0.5, 0.3]
    assert tv(law(THREE, DrawnExpert(three), reveal=rule), law(THREE, Mixture(three), reveal=rule)) < ROUNDING


@pytest.mark.parametrize("rule", [ByConfidence(4), ByConfidence(2), ByProduct(0.6)], ids=repr)
def test_it_draws_what_the_mixture_draws(rule: RevealRule) -> None:
    drawn = sample(EXPERTS, DrawnExpert(OMEGA), empty(20_000), reveal=rule, temperature=1.0, seed=3)
    assert_drawn_from(drawn.x_0, law_of(Mixture(OMEGA), reveal=rule))


def test_in_the_order_of_the_reverse_process_too() -> None:
    drawn = sample(EXPERTS, DrawnExpert(OMEGA), empty(20_000), reveal=Ancestral(3), temperature=1.0, seed=4)
    assert_drawn_from(drawn.x_0, ancestral_law(WORLD, mixed(OMEGA), 3))


class ByTheSpeaker(DrawnExpert):
    """What not to do: let the drawn expert's own confidence choose the cell."""

    def __call__(self, log_probs: torch.Tensor, state: SamplerState) -> Composed:
        mixed = super().__call__(log_probs, state)
        assert mixed.routing is not None
        return Composed(routed(log_probs, mixed.routing), routing=mixed.routing)


def test_an_order_by_who_was_drawn_would_not_be_the_mixture() -> None:
    settings: dict[str, Any] = {"reveal": ByConfidence(4), "temperature": 1.0, "seed": 3}
    drawn = sample(EXPERTS, ByTheSpeaker(OMEGA), empty(20_000), **settings)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_drawn_from(drawn.x_0, law_of(Mixture(OMEGA)))


def test_permuting_the_experts_with_their_weights_changes_nothing() -> None:
    one = law(THREE, DrawnExpert([0.2, 0.5, 0.3]))
    assert tv(one, law(THREE[::-1], DrawnExpert([0.3, 0.5, 0.2]))) < ROUNDING


def test_an_item_draws_the_same_alone_and_in_any_batch() -> None:
    settings: dict[str, Any] = {"temperature": 1.0, "reveal": ByConfidence(3), "seed": 5}
    together = sample(EXPERTS, DrawnExpert(OMEGA), empty(40), trace=True, **settings)
    alone = sample(EXPERTS, DrawnExpert(OMEGA), empty(1), items=torch.tensor([17]), trace=True, **settings)
    assert torch.equal(alone.x_0[0], together.x_0[17])
    assert alone.trace is not None
    assert together.trace is not None
    assert alone.trace.deciders()[0] == together.trace.deciders()[17]
    batched = Engine(6).sample(EXPERTS, DrawnExpert(OMEGA), empty(40), **settings)
    assert torch.equal(batched.x_0, together.x_0)


def test_the_map_names_who_is_drawn_and_cells_draw_apart() -> None:
    state = SamplerState.begin(empty(4000), MASK, 2, seed=1)
    composed = DrawnExpert(OMEGA)(log_probs(1, 2, 4000, CELLS, 3), state)
    assert composed.routing is not None
    assert torch.equal(composed.routing, drawn_speakers(composed, state))
    z = composed.routing.double()
    error = 5 * (0.21 / 4000) ** 0.5
    assert (z.mean(0) - 0.7).abs().max() < error
    pairs = (z[:, :-1] * z[:, 1:]).mean(0) - 0.49
    assert pairs.abs().max() < error


def test_with_the_likeliest_value_it_is_the_mixture() -> None:
    greedy, mixture = (sample(EXPERTS, one, empty(5)) for one in (DrawnExpert(OMEGA), Mixture(OMEGA)))
    assert torch.equal(greedy.x_0, mixture.x_0)


def test_the_loop_asks_everybody_and_counts_that() -> None:
    drawn = compose(EXPERTS, "drawn-expert", weights=OMEGA, reveal="exact").sample(empty(3), seed=1)
    assert drawn.executed_passes.tolist() == [2 * CELLS] * 3


def test_as_a_proposal_it_is_weighted_by_the_mixture() -> None:
    for rule in (ByConfidence(4), ByConfidence(2)):
        one, other = (
            exact_law(EXPERTS, Corrected(proposal, [1.0, 0.5]), CELLS, reveal=rule)
            for proposal in (DrawnExpert(OMEGA), Mixture(OMEGA))
        )
        assert torch.equal(one.x_0, other.x_0)
        assert (one.log_w - other.log_w).abs().max() < ROUNDING


BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "negative": ("weights: expected finite non-negative numbers", lambda: DrawnExpert([-1.0, 2.0])),
    "none": ("weights: expected at least one positive weight", lambda: DrawnExpert([0.0, 0.0])),
    "three for two": (
        "weights: expected 2 numbers, one per expert, got 3",
        lambda: law_of(DrawnExpert([1.0, 1.0, 1.0])),
    ),
    "one expert": ("method: 'drawn-expert' takes at least 2 experts", lambda: compose(EXPERTS[:1], "drawn-expert")),
    "an option it has not": (
        "beta: the method 'drawn-expert' does not take it; its options: weights",
        lambda: compose(EXPERTS, "drawn-expert", beta=[1, 1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_nonsense_is_refused(what: str) -> None:
    sentence, call = BAD[what]
    with pytest.raises(InvalidInput, match=sentence):
        call()
