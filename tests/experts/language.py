"""Tiny masked language models with weights that are drawn, not downloaded."""

from __future__ import annotations

from typing import Any

import torch

SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
VOCABULARY, MASK, PAD, CLS, SEP = 40, 4, 1, 0, 2


def tiny(family: str, seed: int = 0, kind: str = "MaskedLM", **settings: Any) -> Any:
    """A model of a family of `transformers`, in eval mode."""
    import transformers

    config = getattr(transformers, f"{family}Config")
    given = {
        **SMALL,
        "vocab_size": VOCABULARY,
        "pad_token_id": PAD,
        "max_position_embeddings": 34,
        **settings,
    }
    if family == "Esm":
        given |= {"mask_token_id": MASK, "position_embedding_type": "rotary"}
    if family == "ModernBert":
        given |= {"cls_token_id": CLS, "sep_token_id": SEP, "bos_token_id": CLS, "eos_token_id": SEP}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, f"{family}For{kind}")(config(**given))
        for weights in model.parameters():
            torch.nn.init.normal_(weights, std=0.4)
    return model.eval()


class Tokenizer:
    """What is asked of a tokenizer: its words, its mask and its special tokens."""

    def __init__(self, words: dict[str, int], special: list[int], mask: int | None = MASK) -> None:
        self.words, self.all_special_ids, self.mask_token_id = words, special, mask

    def get_vocab(self) -> dict[str, int]:
        return self.words
