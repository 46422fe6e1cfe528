"""Diffusion language models by their own classes, each called in its own way."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from factordiff import ByBlock, MaskedLanguageModel, compose, of_adapters
from factordiff.errors import InvalidInput
from tests.experts.diffusion_models import DreamLike, LladaLike
from tests.experts.language import MASK, PAD, SEP, VOCABULARY

CELLS = torch.tensor([[7, VOCABULARY, 9, VOCABULARY]])
PADDED = {"input_ids": torch.tensor([[PAD, PAD, 20, 21]]), "attention_mask": torch.tensor([[0, 0, 1, 1]])}


@pytest.mark.parametrize(("kind", "shifted"), [(DreamLike, True), (LladaLike, False)])
def test_prompts_may_be_padded_on_the_left(kind: Any, shifted: bool) -> None:
    expert = MaskedLanguageModel(kind(), shifted=shifted)
    assert expert.mask_token == MASK
    alone = expert.log_probs(CELLS, torch.tensor([[20, 21]]))
    assert torch.allclose(expert.log_probs(CELLS, PADDED), alone, atol=1e-5)
    assert not torch.allclose(expert.log_probs(CELLS, PADDED["input_ids"]), alone, atol=1e-3)
    asked = CELLS == VOCABULARY
    assert torch.allclose(expert.log_probs_at(CELLS, PADDED, asked), alone[asked], atol=1e-5)


@pytest.mark.parametrize("kind", [DreamLike, LladaLike])
def test_other_samplers_may_pad_and_count(kind: Any) -> None:
    model = compose([MaskedLanguageModel(kind(seed)) for seed in (1, 2)]).as_model()
    ids = torch.tensor([[PAD, PAD, 20, MASK, 22]])
    mask, position = torch.tensor([[0, 0, 1, 1, 1]]), torch.tensor([[0, 0, 0, 1, 2]])
    padded = model(ids, attention_mask=mask, position_ids=position).logits
    assert torch.allclose(padded[:, 2:], model(ids[:, 2:]).logits, atol=1e-5)


def test_adapters_over_a_model_without_positions() -> None:
    import peft

    base = LladaLike()
    tuned: Any = peft.PeftModel(
        base, peft.LoraConfig(r=2, target_modules=["head"], init_lora_weights=False), "law"
    ).eval()
    plain = MaskedLanguageModel(base, mask_token=MASK)
    experts = of_adapters(tuned, ["law", ""], mask_token=MASK)
    said = {name: expert.log_probs(CELLS, PADDED) for name, expert in experts.items()}
    assert not torch.allclose(said["law"], said["base"], atol=1e-3)
    with tuned.disable_adapter():
        assert torch.allclose(said["base"], plain.log_probs(CELLS, PADDED), atol=1e-5)


def test_a_text_longer_than_the_model_reads_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"x_t: 13 positions, .* but the model has 12; use fewer cells"):
        MaskedLanguageModel(LladaLike()).log_probs(torch.full((1, 13), 7), None)


@pytest.mark.parametrize("method", ["mixture", "routing", "product"])
def test_a_text_is_over_after_its_end(method: str) -> None:
    """The models say nothing but the end there, and the rule takes all that is left in one step."""
    models = [LladaLike(seed) for seed in (1, 2)]
    for model in models:
        model.head.bias.data[SEP] += 1.0  # they end soon
    texts, steps = [], []
    for end, rule in ((SEP, ByBlock(4, 4, end=SEP)), (SEP, ByBlock(4, 4)), (None, ByBlock(4, 4))):
        team = compose([MaskedLanguageModel(model, end=end) for model in models], method)
        drawn = team.sample(torch.full((16, 12), VOCABULARY), reveal=rule, temperature=1.0, seed=5)
        texts.append(drawn.x_0)
        steps.append(drawn.executed_passes.tolist())
    ended, slowly, unending = texts
    places = (ended == SEP).int().argmax(-1).tolist()
    assert any(0 < place < 8 for place in places)
    for row, place in zip(ended, places, strict=True):
        if SEP in row:  # inside its block, cells behind it may have been surer than it was
            assert (row[4 * (place // 4 + 1) :] == SEP).all()
    assert torch.equal(ended, slowly)  # what comes is the same, in fewer passes
    assert sum(steps[0]) < sum(steps[1])
    assert not torch.equal(ended, unending)
