"""A masked language model as an expert: positions are cells, chosen tokens are values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary


class MaskedLanguageModel:
    """Any model in the style of Hugging Face's `...ForMaskedLM`: called with `input_ids`, it returns `.logits`.

    `tokens[v]` is the model's id of value v; what it says about other tokens is left out and the rest normalised.
    `prefix` and `suffix` are ids around the cells, such as those of [CLS] and [SEP]. A condition, if there is one,
    is a tensor of further ids per item (a prompt), put between the prefix and the cells.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        tokens: Sequence[int],
        mask_token: int,
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
    ) -> None:
        if len(set(tokens)) != len(tokens) or mask_token in tokens:
            raise InvalidInput(
                f"tokens: expected distinct ids without the mask's ({mask_token}), got {list(tokens)}"
            )
        self.vocabulary = Vocabulary(len(tokens))
        self.model = model
        self.mask_token = mask_token
        self.tokens, self.prefix, self.suffix = tuple(tokens), tuple(prefix), tuple(suffix)

    def __repr__(self) -> str:
        return f"MaskedLanguageModel({type(self.model).__name__}, {self.vocabulary.size} values)"

    def encode(self, condition: Int[Tensor, "item place"] | None) -> Int[Tensor, "item place"] | None:
        """The prompts as they are; the model reads them anew in every pass."""
        return condition

    @torch.no_grad()
    def log_probs(self, x_t: Tokens, encoded: Int[Tensor, "batch place"] | None) -> CellLogProbs:
        """The model's distribution at every position, restricted to the values."""
        batch, cells = x_t.shape
        ids = torch.tensor([*self.tokens, self.mask_token], device=x_t.device)  # MASK comes after the values

        def around(part: Sequence[int]) -> Tensor:
            return torch.tensor(part, dtype=torch.int64, device=x_t.device).expand(batch, len(part))

        before = [around(self.prefix)] if encoded is None else [around(self.prefix), encoded]
        first = sum(part.shape[1] for part in before)
        said = self.model(input_ids=torch.cat([*before, ids[x_t], around(self.suffix)], dim=1)).logits
        return torch.log_softmax(said[:, first : first + cells][:, :, ids[:-1]].float(), dim=-1)
