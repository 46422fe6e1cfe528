"""A team as a model against the loop: what `Team.sample` composed in each step, and what the model says there."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from factordiff import ByBlock, ByConfidence, Composition, MaskedLanguageModel, Team, compose, of_adapters
from factordiff.composition.learned import Learned
from factordiff.composition.proposal import Proposal
from factordiff.composition.router import RouterConfig
from factordiff.errors import InvalidInput
from factordiff.sampling import step
from factordiff.team.model import NEVER
from tests.composition.test_router import drawn_router
from tests.experts.language import CLS, MASK, VOCABULARY, tiny
from tests.experts.test_masked_lm import adapted
from tests.toy import seeds

METHODS = ("routing", "soft-routing", "mixture", "product", "geometric-mean", "drawn-expert")
FEW = range(6, 24)  # 18 ids that are values: of so few a router looks at each
CLOSE = 2e-5  # float32 log-probabilities, composed in another order


def around_it(tokens: Any = None) -> Composition:
    """A fitted router that looks at what stands around a cell, its weights drawn."""
    return Learned(
        drawn_router(RouterConfig(2, VOCABULARY if tokens is None else len(tokens), "neighbourhood"))
    )


def pair(seed: int, method: str | Composition, size: int = VOCABULARY, **settings: Any) -> Team:
    models = [tiny("Bert", seed + more, vocab_size=size) for more in (0, 1)]
    experts = [MaskedLanguageModel(model, mask_token=MASK, **settings) for model in models]
    return compose(experts, method, engine=None)


def some_text(seed: int, team: Team, cells: int = 9) -> Tensor:
    """Cells of which about a third are given."""
    generator = torch.Generator().manual_seed(seed)
    mask = team.experts[0].vocabulary.mask
    given_cells = torch.rand(2, cells, generator=generator) < 0.3
    given_cells[:, 4] = False
    words = torch.randint(
        MASK + 1, mask, (2, cells), generator=generator
    )  # none of them is the model's own mask
    return torch.where(given_cells, words, mask)


def check_every_step(team: Team, x_t: Tensor, rule: Any) -> int:
    """Run the loop; at every step the model, shown the same ids, must say what was composed. How many steps."""
    model, seen = team.as_model(), list[Proposal]()
    propose = step.propose

    def noted(*given: Any) -> Proposal:
        seen.append(propose(*given))
        return seen[-1]

    with patch.object(step, "propose", noted):
        team.sample(x_t, reveal=rule)
    expert = team.experts[0]
    assert isinstance(expert, MaskedLanguageModel)
    ids = torch.tensor([*expert.tokens, MASK])
    for one in seen:
        logits = model(ids[one.state.x_t]).logits[..., list(expert.tokens)]
        if isinstance(one.log_probs, Tensor):
            used, said = one.composed.log_probs[one.candidates], logits[one.candidates]
        else:  # a large vocabulary: a row for each cell that was asked about
            assert one.kept is not None
            used, said = one.kept.log_probs.squeeze(1), logits[one.log_probs.row, one.log_probs.cell]
        assert len(used) > 0
        torch.testing.assert_close(said.double(), used.double().clamp(min=NEVER), rtol=0, atol=CLOSE)
    return len(seen)


@settings(max_examples=8)
@given(seeds, st.sampled_from([ByConfidence(4), ByBlock(3, 2, "margin")]))
@pytest.mark.parametrize("method", METHODS)
def test_it_says_what_the_loop_used(method: str, seed: int, rule: Any) -> None:
    team = pair(seed % 1000, method)
    assert check_every_step(team, some_text(seed, team), rule) >= 2


@pytest.mark.parametrize(
    "options",
    [{"tokens": FEW}, {"suppressed": [7, 8]}, {"shifted": True}],
    ids=["some tokens", "suppressed", "shifted"],
)
@pytest.mark.parametrize("method", ["routing", "mixture", "router"])
def test_whatever_the_adapter_was_told(method: str, options: dict[str, Any]) -> None:
    team = pair(3, around_it(options.get("tokens")) if method == "router" else method, **options)
    assert check_every_step(team, some_text(1, team), ByConfidence(4)) >= 2


@pytest.mark.parametrize("method", METHODS)
def test_at_a_large_vocabulary_too(method: str) -> None:
    team = pair(5, method, size=1500)
    assert check_every_step(team, some_text(2, team), ByBlock(3, 2)) >= 2


def test_with_adapters_over_one_base() -> None:
    team = compose(of_adapters(adapted(), ["law", "verse", ""], mask_token=MASK), "mixture", engine=None)
    assert check_every_step(team, some_text(4, team), ByConfidence(4)) >= 2


def test_a_router_that_looks_at_evidence_is_refused() -> None:
    router = drawn_router(RouterConfig(2, VOCABULARY, evidence=True))
    with pytest.raises(InvalidInput, match=r"as_model: .* carries what a text's path has brought"):
        pair(1, Learned(router)).as_model()


@pytest.mark.parametrize("family", ["Bert", "Roberta", "ModernBert", "Esm"])
def test_positions_that_a_sampler_counts_from_nought(family: str) -> None:
    experts = [MaskedLanguageModel(tiny(family, seed), mask_token=MASK) for seed in (1, 2)]
    model, ids = compose(experts).as_model(), torch.tensor([[CLS, 11, MASK, 13, MASK, 14]])
    counted = model(ids, attention_mask=torch.ones_like(ids), position_ids=torch.arange(6)[None]).logits
    torch.testing.assert_close(counted, model(ids).logits, rtol=0, atol=CLOSE)
