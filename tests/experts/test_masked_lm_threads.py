"""One model, asked by several threads at once: each is told what it asked."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from factordiff import MaskedLanguageModel, of_adapters
from tests.experts.language import MASK, VOCABULARY, tiny

CELLS = torch.full((2, 5), VOCABULARY)


def slowed(model: Any) -> Any:
    """The model, which lets others in between its layers and its output layer."""
    model.get_output_embeddings().register_forward_pre_hook(lambda *_: time.sleep(0.02))
    return model


def test_each_thread_is_told_of_the_cells_it_asked_about() -> None:
    expert = MaskedLanguageModel(slowed(tiny("Bert")), mask_token=MASK)
    everywhere = expert.log_probs(CELLS, None)
    asked = [torch.arange(10).view(2, 5) % 5 == cell for cell in range(4)]

    def said(cells: Tensor) -> Tensor:
        return expert.log_probs_at(CELLS, None, cells)

    with ThreadPoolExecutor(4) as threads:
        for cells, found in zip(asked, threads.map(said, asked), strict=True):
            assert torch.allclose(found, everywhere[cells], atol=1e-5)


def test_each_thread_speaks_with_its_own_adapter() -> None:
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False)
    base = get_peft_model(slowed(tiny("Bert")), settings, adapter_name="law")
    base.add_adapter("verse", settings)
    experts = list(of_adapters(base.eval(), ["law", "verse", ""], mask_token=MASK).values())
    alone = [expert.log_probs(CELLS, None) for expert in experts]
    assert not torch.allclose(alone[0], alone[1], atol=1e-3)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda expert: expert.log_probs(CELLS, None), experts * 4))
    for number, said in enumerate(found):
        assert torch.allclose(said, alone[number % 3], atol=1e-5)
