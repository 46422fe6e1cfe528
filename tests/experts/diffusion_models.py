"""Stand-ins for diffusion language models, called as the real ones are; their weights are drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tests.experts.language import MASK, VOCABULARY

WIDTH = 8


class Attending(nn.Module):
    """Two layers of attention in both directions, and an output layer."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
            self.head = nn.Linear(WIDTH, VOCABULARY)

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def read(self, h: Tensor, mask: Tensor | None) -> Any:
        for layer in self.layers:
            q, k, v = (part.unsqueeze(1) for part in layer(h).chunk(3, -1))
            h = h + nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).squeeze(1)
        return SimpleNamespace(logits=self.head(h))


class DreamLike(Attending):
    """As Dream: `attention_mask` goes to the attention as it is, positions are told, logits speak of the next one."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.config = SimpleNamespace(vocab_size=VOCABULARY, mask_token_id=MASK, model_type="Dream")

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Any:
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1])[None]
        place = torch.sin(position_ids.unsqueeze(-1) / torch.arange(1, WIDTH + 1))
        return self.read(self.embed(input_ids) + place, attention_mask)


class LladaLike(Attending):
    """As LLaDA: it takes no positions, and its config calls their number `max_sequence_length`."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.config = SimpleNamespace(
            vocab_size=VOCABULARY, mask_token_id=MASK, model_type="llada", max_sequence_length=12
        )

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, use_cache: bool | None = None
    ) -> Any:
        mask = None if attention_mask is None else attention_mask.to(torch.bool)[:, None, None, :]
        return self.read(self.embed(input_ids), mask)
