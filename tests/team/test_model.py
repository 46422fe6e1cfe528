"""A team as a model: other people's samplers drive it, and it says what the loop used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff import ByBlock, MaskedLanguageModel, Team, compose
from factordiff.errors import InvalidInput
from factordiff.team.model import NEVER
from factordiff.toy.painting import painters
from tests.experts.diffusion_models import DreamLike, LladaLike
from tests.experts.language import MASK, VOCABULARY, tiny

WORDS = [token for token in range(VOCABULARY) if token != MASK]


def team(method: Any = "routing", count: int = 2, **options: Any) -> Team:
    experts = [MaskedLanguageModel(tiny("Bert", seed), mask_token=MASK) for seed in range(1, count + 1)]
    return compose(experts, method, **options)


PROMPT = torch.tensor([[11, 12, 13], [14, 15, 16]])


@torch.no_grad()
def llada_generate(
    model: Any, prompt: Tensor, steps: int, gen_length: int, block_length: int, cfg: float = 0.0
) -> Tensor:
    """The sampler of the LLaDA repository, low-confidence remasking, temperature 0: written from its description."""
    x = torch.full((len(prompt), prompt.shape[1] + gen_length), model.mask_token_id, device=model.device)
    x[:, : prompt.shape[1]] = prompt
    given = x != model.mask_token_id
    blocks = gen_length // block_length
    for number in range(blocks):
        begin = prompt.shape[1] + number * block_length
        end = begin + block_length
        per_block = steps // blocks
        masked_at_start = (x[:, begin:end] == model.mask_token_id).sum(1)
        for step in range(per_block):
            logits = model(x).logits
            if cfg:
                without = model(torch.where(given, model.mask_token_id, x)).logits
                logits = without + (cfg + 1) * (logits - without)
            x0 = logits.argmax(-1)
            p = torch.softmax(logits.double(), -1).gather(-1, x0.unsqueeze(-1)).squeeze(-1)
            p[:, end:] = -torch.inf
            masked = x == model.mask_token_id
            confidence = torch.where(masked, p, -torch.inf)
            for row in range(len(x)):
                count = int(masked_at_start[row]) // per_block + (
                    step < int(masked_at_start[row]) % per_block
                )
                chosen = confidence[row].topk(count).indices
                x[row, chosen] = x0[row, chosen]
    return x


@pytest.mark.parametrize("method", ["routing", "mixture", "geometric-mean", "soft-routing"])
def test_a_llada_style_loop_writes_what_our_loop_writes(method: str) -> None:
    together = compose([MaskedLanguageModel(DreamLike(seed)) for seed in (1, 2)], method)
    theirs = llada_generate(together.as_model(), PROMPT, steps=4, gen_length=8, block_length=4)
    x_t = torch.full((2, 11), VOCABULARY)
    x_t[:, :3] = PROMPT
    ours = together.sample(x_t, reveal=ByBlock(4, 2, "low-confidence"), temperature=0.0).x_0
    assert torch.equal(theirs, ours)
    assert len(theirs[:, 3:].unique()) > 2  # models that always say the same would agree whatever the loop


def test_guidance_without_a_classifier_never_writes_what_is_never_emitted() -> None:
    """Logits of -inf would make NaN of each other, and NaN the likeliest of all."""
    never = [MASK, 0, 26]
    experts = [MaskedLanguageModel(LladaLike(seed), suppressed=never) for seed in (1, 2)]
    model = compose(experts, "mixture").as_model()
    settings = {"steps": 4, "gen_length": 8, "block_length": 4}
    written = llada_generate(model, PROMPT, **settings, cfg=1.5)
    assert not torch.isin(written[:, 3:], torch.tensor(never)).any()
    # By hand: mixtures of both models in float64, with the prompt and without it.
    models = [LladaLike(seed).double() for seed in (1, 2)]

    def mixed(ids: Tensor) -> Any:
        logits = torch.stack([one(input_ids=ids).logits for one in models])
        logits[..., never] = -1e30
        return SimpleNamespace(logits=logits.log_softmax(-1).logsumexp(0))

    mixed.mask_token_id, mixed.device = MASK, torch.device("cpu")  # type: ignore[attr-defined]
    assert torch.equal(written, llada_generate(mixed, PROMPT, **settings, cfg=1.5))
    assert not torch.equal(written, llada_generate(model, PROMPT, **settings))


def dream_generate(model: Any, ids: Tensor, steps: int) -> Tensor:
    """The heart of Dream's sampler: it says "full" where nothing is padded, and shifts logits by itself."""
    x = ids.clone()
    for _ in range(steps):
        logits = model(x, "full", None).logits
        logits = torch.cat([logits[:, :1], logits[:, :-1]], 1)
        p, x0 = logits.softmax(-1).max(-1)
        chosen = torch.where(x == MASK, p, -1.0).argmax(-1, keepdim=True)
        x = x.scatter(1, chosen, x0.gather(1, chosen))
    return x


@pytest.mark.parametrize("shifted", [False, True])
def test_a_dream_style_loop_writes_what_our_loop_writes(shifted: bool) -> None:
    experts = [MaskedLanguageModel(DreamLike(seed), shifted=shifted) for seed in (1, 2)]
    together = compose(experts, "mixture")
    ids = torch.cat([PROMPT, torch.full((2, 5), MASK)], 1)
    theirs = dream_generate(together.as_model(shifted=True), ids, 5)
    ours = together.sample(torch.where(ids == MASK, VOCABULARY, ids), reveal=ByBlock(5, 5), temperature=0.0)
    assert torch.equal(theirs, ours.x_0)
    model = together.as_model()
    assert not torch.equal(
        theirs, dream_generate(model, ids, 5)
    )  # what speaks of a position is not to be shifted
    (unpacked,) = model(ids, return_dict=False, output_attentions=False)
    assert torch.equal(unpacked, model(ids, attention_mask="full").logits)
    with pytest.raises(InvalidInput, match="attention_mask: expected a tensor, None or 'full', got 'causal'"):
        model(ids, "causal")


def test_ids_that_are_none_are_refused() -> None:
    model = team().as_model()
    with pytest.raises(
        InvalidInput, match=r"input_ids: expected whole ids of shape \(batch, position\), got"
    ):
        model(PROMPT[0])
    with pytest.raises(InvalidInput, match=r"input_ids: expected ids 0 .. 39, got 11 .. 77"):
        model(torch.tensor([[11, 77]]))
    with pytest.raises(
        InvalidInput, match=r"attention_mask: expected the shape of the input_ids, \(1, 2\), got"
    ):
        model(torch.tensor([[11, 12]]), torch.ones(1, 3))


def test_its_logits_are_those_of_the_loop() -> None:
    for together in (team(), team("product"), team("routing", factors=torch.tensor([0, 0, 0, 3, 3, 3]))):
        model = together.as_model()
        ids = torch.tensor([[11, MASK, 13, MASK, MASK, 16]])
        x_t = torch.where(ids == MASK, VOCABULARY, ids)
        logits = model(ids).logits
        assert logits.shape == (1, 6, VOCABULARY)
        from factordiff import SamplerState

        said = torch.stack([expert.log_probs(x_t, None) for expert in together.experts])
        state = SamplerState.begin(x_t, VOCABULARY, 2)
        composed = together.method_for(6).composition(said, state).log_probs
        hidden = ids == MASK
        assert torch.allclose(logits[hidden], composed[hidden].clamp(min=NEVER), atol=1e-5)
        assert (logits[..., MASK] == NEVER).all()
        assert torch.allclose(logits.exp().sum(-1), torch.ones(1, 6), atol=1e-5)
        # Revealed positions too: what the models say of them, not the token that stands there.
        assert (logits[~hidden].exp().amax(-1) < 1).all()


def test_padding_positions_and_the_models_own_ids() -> None:
    model = team().as_model()
    assert model.mask_token_id == model.config.mask_token_id == MASK
    assert model.config.vocab_size == VOCABULARY
    assert model.device == torch.device("cpu")
    ids = torch.tensor([[1, 1, 11, MASK]])
    mask = torch.tensor([[0, 0, 1, 1]])
    padded = model(ids, attention_mask=mask, position_ids=torch.tensor([[0, 0, 0, 1]])).logits
    assert torch.allclose(padded[:, 2:], model(ids[:, 2:]).logits, atol=1e-4)
    some = compose([MaskedLanguageModel(tiny("Bert", seed), WORDS[3:20], MASK) for seed in (1, 2)]).as_model()
    logits = some(ids).logits
    assert logits.shape == (1, 4, VOCABULARY)
    assert [t for t in range(VOCABULARY) if logits[0, 3, t] > NEVER] == WORDS[3:20]
    with pytest.raises(InvalidInput, match="past_key_values: a team as a model takes input_ids"):
        model(ids, past_key_values=1)


@pytest.mark.parametrize("method", ["superdiff", "superdiff-and", "fkc", "rne", "vote"])
def test_methods_that_carry_state_are_refused(method: str) -> None:
    with pytest.raises(InvalidInput, match=f"as_model: '{method}' carries what a text's path has brought"):
        team(method).as_model()


def test_methods_that_carry_state_are_refused_with_factors_too() -> None:
    for options in ({}, {"factors": torch.tensor([0, 0, 0, 3, 3, 3])}):
        with pytest.raises(InvalidInput, match="as_model: 'evidence' carries what a text's path has brought"):
            team("evidence", **options).as_model()


def test_what_is_no_language_model_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match="as_model: expected masked language models, got expert 1, a Indep"
    ):
        compose(painters()).as_model()
    one, other = tiny("Bert"), tiny("Bert")
    unlike = [MaskedLanguageModel(one, WORDS[:20], MASK), MaskedLanguageModel(other, WORDS[1:21], MASK)]
    with pytest.raises(InvalidInput, match="expected models with the same ids for values and mask"):
        compose(unlike).as_model()


def test_what_the_tokenizer_of_a_bert_returns_is_taken_whole() -> None:
    model, ids = team().as_model(), torch.tensor([[11, 12]])
    told = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    same = model(**told, token_type_ids=torch.zeros_like(ids)).logits
    assert torch.equal(same, model(**told).logits)
    with pytest.raises(
        InvalidInput, match="token_type_ids: a team as a model takes input_ids, attention_mask"
    ):
        model(**told, token_type_ids=torch.ones_like(ids))


def test_what_a_sampler_should_not_see_is_refused() -> None:
    together = team()
    with pytest.raises(InvalidInput, match=r"x_t: 35 positions, with prompt .* but the model has 34"):
        together.as_model()(torch.full((1, 35), MASK))
    spoilt = together.experts[1]
    assert isinstance(spoilt, MaskedLanguageModel)
    torch.nn.init.constant_(spoilt.model.get_output_embeddings().weight, torch.nan)  # type: ignore[operator]
    with pytest.raises(
        InvalidInput, match="model: the logits of expert 2 contain NaN; it cannot be composed"
    ):
        together.as_model()(PROMPT)


def test_the_pipeline_of_diffusers_drives_a_team() -> None:
    from diffusers import BlockRefinementScheduler, LLaDA2Pipeline

    together = team("mixture")
    pipeline = LLaDA2Pipeline(together.as_model(), BlockRefinementScheduler(block_length=4), None)
    pipeline.set_progress_bar_config(disable=True)
    settings = {
        "input_ids": PROMPT[:1],
        "gen_length": 9,
        "block_length": 4,
        "num_inference_steps": 2,
        "threshold": 1.1,  # no more than the schedule says
        "eos_early_stop": False,
        "mask_token_id": MASK,
        "output_type": "seq",
    }
    written = pipeline(**settings, editing_threshold=None).sequences
    assert written.shape[0] == 1
    assert (written != MASK).all()
    # Its blocks are counted from position 0, prompt and all; ours from the first masked one.
    x_t = torch.full((1, 12), VOCABULARY)
    x_t[:, :3] = PROMPT[:1]
    expected = x_t.clone()
    for end in (4, 8, 12):
        step = torch.where(torch.arange(12) < end, expected, VOCABULARY)[:, :end]
        expected[:, :end] = together.sample(step, reveal=ByBlock(4, 2), temperature=0.0).x_0
    assert written.tolist() == expected[:, 3:].tolist()
    # It may edit what stands there: then revealed positions are asked about, and answered.
    edited = pipeline(**settings, editing_threshold=0.05, max_post_steps=3).sequences
    assert (edited != MASK).all()


def test_it_can_be_shown() -> None:
    assert repr(team().as_model()).startswith("TeamModel(Team(expert 1 (full) + expert 2 (full); routing")
    assert SimpleNamespace is type(team().as_model().config)
