"""Which of a language model's ids are values of cells, which are never emitted, and which mean nothing in a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.model_calls import check_ids, ids_of, mask_token_of
from factordiff.schema.bound import shown
from factordiff.types import Tokens


class TokenTables(NamedTuple):
    """What does not change from pass to pass, on one device: copying it anew would make the device wait."""

    ids: Int[Tensor, " value+1"]  # the model's id of each value, and of the mask behind them
    never: Int[Tensor, " some"]  # the values that are never emitted


class TokenValues:
    """The ids of a model in the order of the values, and its mask's; `MaskedLanguageModel` says what each is given."""

    def __init__(
        self,
        model: Any,
        tokens: Sequence[int] | None,
        mask_token: int | None,
        suppressed: Sequence[int],
        end: int | None,
        pad: int | None,
        tokenizer: Any,
    ) -> None:
        given = None if tokens is None else check_ids("tokens", tokens, model)
        self.mask_token = mask_token_of(mask_token, model, tokenizer)
        self.tokens = tuple(range(ids_of(model))) if given is None else given
        if len(set(self.tokens)) != len(self.tokens) or (
            tokens is not None and self.mask_token in self.tokens
        ):
            raise InvalidInput(
                f"tokens: expected distinct ids without the mask's ({self.mask_token}), got {shown(self.tokens)}"
            )
        for name, one in (("end", end), ("pad", pad)):
            if one is not None and one not in self.tokens:
                raise InvalidInput(f"{name}: expected the id of one of the tokens, got {one!r}")
        special = set() if tokenizer is None else set(tokenizer.all_special_ids)
        # Ids that mean nothing in a cell: the mask's and, of a model with more ids than its tokenizer has words, those
        # behind the words. Which ids are values may also be said by hand: then all of them mean something.
        self.meaningless: set[int] = set()
        if tokens is None:
            words = set(self.tokens) if tokenizer is None else set(tokenizer.get_vocab().values())
            self.meaningless = set(self.tokens) & {self.mask_token} | set(self.tokens) - words - {end}
        else:
            special -= set(self.tokens)
        never = {self.mask_token, *check_ids("suppressed", suppressed, model), *special, *self.meaningless}
        never = (never | {pad}) - {end}
        self.never = [value for value, token in enumerate(self.tokens) if token in never]
        self.end = None if end is None else self.tokens.index(end)
        self.pad = None if pad is None else self.tokens.index(pad)
        self.last = max(self.tokens)  # the largest id that logits must have
        self._in_order = self.tokens == tuple(range(len(self.tokens)))
        self._tables: dict[torch.device, TokenTables] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def on(self, device: torch.device) -> TokenTables:
        """The tables there, copied once."""
        if device not in self._tables:
            parts = ([*self.tokens, self.mask_token], self.never)
            self._tables[device] = TokenTables(
                *(torch.tensor(part, dtype=torch.int64, device=device) for part in parts)
            )
        return self._tables[device]

    def check_given(self, x_t: Tokens) -> None:
        """Refuse given cells that hold an id without a meaning: most likely they are to be hidden."""
        held = {int(one) for one in x_t.unique()} & self.meaningless
        if held:
            one, mask = min(held), len(self)
            what = "the model's own mask" if one == self.mask_token else "which no word of the tokenizer has"
            raise InvalidInput(
                f"cells: some hold the id {one}, {what}; where ids are the values, hidden cells are {mask}, one "
                f"past the last: torch.where(ids == {one}, {mask}, ids)"
            )

    def normalised(self, logits: Float[Tensor, "asked token"]) -> Float[Tensor, "asked value"]:
        """Log-probabilities of the values, none of which is a token that is never emitted."""
        tables = self.on(logits.device)
        said = logits[:, : len(self)] if self._in_order else logits[:, tables.ids[:-1]]
        if self.never:
            said = said.float().index_fill(1, tables.never, -torch.inf)
        return torch.log_softmax(said.float(), -1)

    def ended(
        self, log_probs: Tensor, x_t: Tokens, asked: Int[Tensor, " asked"]
    ) -> Float[Tensor, "asked value"]:
        """After the end of a text, where all before it is known, there is nothing but the end."""
        if self.end is None:
            return log_probs
        known = (x_t != len(self)).to(torch.uint8).cumprod(-1).bool()
        over = (known & (x_t == self.end)).to(torch.uint8).cummax(-1).values.bool().flatten()[asked]
        nothing_else = torch.full_like(log_probs, -torch.inf)
        nothing_else[:, self.end] = 0.0
        return torch.where(over[:, None], nothing_else, log_probs)
