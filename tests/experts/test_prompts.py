"""Prompts as tokenizers make them: padded on either side, in their own kind of dict, or not fit to be prompts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BatchEncoding

from factordiff import ByBlock, Engine, MaskedLanguageModel, compose, of_adapters
from factordiff.errors import InvalidInput
from tests.experts.diffusion_models import DreamLike, LladaLike
from tests.experts.language import MASK, PAD, VOCABULARY, tiny

CELLS = torch.full((2, 4), VOCABULARY)
LEFT = {
    "input_ids": torch.tensor([[PAD, PAD, 20], [21, 22, 23]]),
    "attention_mask": torch.tensor([[0, 0, 1], [1, 1, 1]]),
}
RIGHT = {
    "input_ids": torch.tensor([[20, PAD, PAD], [21, 22, 23]]),
    "attention_mask": torch.tensor([[1, 0, 0], [1, 1, 1]]),
}


@pytest.mark.parametrize(
    ("model", "shifted"), [(tiny("Bert"), False), (LladaLike(), False), (DreamLike(), True)]
)
def test_padding_may_be_on_either_side(model: Any, shifted: bool) -> None:
    """Else the first cell would be read from behind padding, or stand far from its prompt."""
    expert = MaskedLanguageModel(model, mask_token=MASK, shifted=shifted)
    said = [expert.log_probs(CELLS, expert.encode(one)) for one in (LEFT, RIGHT)]
    assert torch.equal(*said)
    alone = expert.log_probs(CELLS[:1], torch.tensor([[20]]))
    assert torch.allclose(said[1][:1], alone, atol=1e-4)


@pytest.mark.parametrize("engine", ["auto", Engine(batch=1)])
def test_what_a_tokenizer_returns_is_a_prompt(engine: Any) -> None:
    experts = [MaskedLanguageModel(tiny("Bert", seed), mask_token=MASK) for seed in (1, 2)]
    team = compose(experts, "mixture", engine=engine)
    told = BatchEncoding({**RIGHT, "token_type_ids": torch.zeros(2, 3, dtype=torch.int64)})
    assert torch.equal(team.sample(CELLS, told).x_0, team.sample(CELLS, LEFT).x_0)


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        (torch.tensor([5, 6]), r"as whole ids of shape \(item, place\), .* got torch.int64 of shape \(2,\)"),
        (torch.tensor([[5.0], [6.0]]), "as whole ids .* got torch.float32"),
        ([[5], [6]], "as whole ids .*return_tensors='pt'.* got a list"),
        (torch.tensor([[5], [99]]), "prompts of ids 0 .. 39, got 5 .. 99"),
        ({**LEFT, "attention_mask": torch.ones(2, 2)}, r"input_ids, \(2, 3\), got \(2, 2\)"),
        ({**LEFT, "token_type_ids": torch.ones(2, 3)}, "got one of input_ids, attention_mask, token_type"),
    ],
)
def test_what_is_no_prompt_is_refused(prompt: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=f"condition: expected .*{sentence}"):
        compose([MaskedLanguageModel(tiny("Bert"), mask_token=MASK)]).sample(CELLS, prompt)


def test_each_adapter_keeps_what_it_made_of_the_prompt() -> None:
    """Over one base, so that keys and values of another adapter would fit."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(r=2, target_modules=["q_proj", "k_proj", "v_proj"], init_lora_weights=False)
    base = get_peft_model(tiny("Llama", kind="CausalLM", num_key_value_heads=1), settings, adapter_name="law")
    base.add_adapter("verse", settings)
    prompt = torch.tensor([[20, 21], [22, 23]])
    plain, keeping = (
        of_adapters(base.eval(), ["law", "verse", ""], mask_token=MASK, prompt_cache=kept)
        for kept in (False, True)
    )
    encoded = {name: expert.encode(prompt) for name, expert in keeping.items()}
    for name, expert in keeping.items():
        said = expert.log_probs(CELLS, encoded[name]).exp()
        assert torch.allclose(said, plain[name].log_probs(CELLS, prompt).exp(), atol=1e-5)
        others = [expert.log_probs(CELLS, encoded[other]).exp() for other in encoded if other != name]
        assert not any(torch.allclose(said, other, atol=1e-3) for other in others)
    texts = [
        compose(one, "mixture").sample(CELLS, prompt, reveal=ByBlock(2, 2)).x_0 for one in (plain, keeping)
    ]
    assert torch.equal(*texts)


def test_a_prompt_that_is_kept_is_named() -> None:
    kept = MaskedLanguageModel(tiny("Bert"), mask_token=MASK, prompt_cache=True)
    assert repr(kept) == "MaskedLanguageModel(BertForMaskedLM, 40 values, prompts read once)"
    assert "read once" not in repr(MaskedLanguageModel(tiny("Bert"), mask_token=MASK))
