"""A masked language model as an expert: positions are cells, tokens are values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.model_calls import (
    at_places,
    check_ids,
    check_length,
    logits_of,
    turn,
    understood,
)
from factordiff.experts.prompts import Prompt, checked_prompt
from factordiff.experts.token_values import TokenValues
from factordiff.schema.bound import shown
from factordiff.types import CellLogProbs, Cells, Tokens
from factordiff.vocabulary import Vocabulary

# A prompt, or a dict of them and of the keys and values that were kept of them.
Encoded = Prompt | dict[str, Any]


class MaskedLanguageModel:
    """Any model that maps `input_ids` (and `attention_mask`, `position_ids`) to `.logits`.

    BERT, RoBERTa, ModernBERT and ESM from `transformers` are such, and diffusion language models by their own classes.
    `tokens[v]` is the model's id of value v, and what it says about other tokens is left out; without `tokens` values
    are the model's ids, and its mask is one past the last. The mask and `suppressed` ids are never emitted. `prefix`
    and `suffix` are ids around the cells, such as those of [CLS] and [SEP]. A condition, if there is one, is a prompt
    for every item: ids, put between the prefix and the cells, or what a tokenizer makes of them, `input_ids` and the
    `attention_mask` of padded ones.

    `shifted`: logits at a position speak of the next one (Dream). `end`: the id that ends a text; after it there is
    nothing else. `pad`: the id in given cells behind shorter texts, at which the model does not look. `tokenizer`:
    tells the mask, the special tokens and the ids that no word has, which are suppressed but for `end`, and what the
    values mean, so that models of different tokenizers are told apart. `adapter`: of a PEFT model, the one to use, or
    "" for none of them. `prompt_cache`: the prompt is read once, and its keys and values are kept for every pass, where
    the model can (`past_key_values`). Where attention goes both ways that is an approximation: the prompt was then read
    without the text behind it.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        tokens: Sequence[int] | None = None,
        mask_token: int | None = None,
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
        *,
        suppressed: Sequence[int] = (),
        shifted: bool = False,
        end: int | None = None,
        pad: int | None = None,
        tokenizer: Any = None,
        adapter: str | None = None,
        prompt_cache: bool = False,
    ) -> None:
        if not callable(model):
            raise InvalidInput(
                f"model: expected a model, got {shown(model)}; load it first, as AutoModelForMaskedLM.from_pretrained"
            )
        self.model, self.tokenizer, self.adapter = model, tokenizer, adapter
        self.prompt_cache = prompt_cache
        self.values = TokenValues(model, tokens, mask_token, suppressed, end, pad, tokenizer)
        self.prefix, self.suffix = check_ids("prefix", prefix, model), check_ids("suffix", suffix, model)
        self.shifted = shifted
        peft = getattr(model, "peft_config", {})
        if (adapter and adapter not in peft) or (adapter == "" and not hasattr(model, "disable_adapter")):
            known = ", ".join(peft) or "none"
            raise InvalidInput(f"adapter: expected one of the model's ({known}), got {adapter!r}")
        self.vocabulary = Vocabulary(len(self.values))
        size = getattr(getattr(model, "config", None), "vocab_size", None)
        self._ids = None if size is None else max(size, self.mask_token + 1)  # that a prompt may have
        self._around: dict[torch.device, list[Tensor]] = {}  # prefix and suffix there
        self._past_type: Any = tuple  # what the model keeps keys and values in

    def __repr__(self) -> str:
        more = f", adapter {self.adapter!r}" if self.adapter else ""
        more += ", prompts read once" if self.prompt_cache else ""
        return f"MaskedLanguageModel({type(self.model).__name__}, {self.vocabulary.size} values{more})"

    @property
    def tokens(self) -> tuple[int, ...]:
        """The model's id of each value."""
        return self.values.tokens

    @property
    def mask_token(self) -> int:
        """The model's id of the mask."""
        return self.values.mask_token

    @property
    def words(self) -> Mapping[str, int] | None:
        """What its tokenizer calls its tokens, if it has one: models are composed only where these are the same."""
        return None if self.tokenizer is None else self.tokenizer.get_vocab()

    def check_given(self, x_t: Tokens) -> None:
        """Refuse given cells that hold an id without a meaning, most likely to be hidden; and a model in training."""
        modules = self.model.modules() if isinstance(self.model, torch.nn.Module) else ()
        if any(isinstance(one, torch.nn.Dropout) and one.training and one.p > 0 for one in modules):
            raise InvalidInput(
                f"model: {type(self.model).__name__} is in training mode, so its dropout would change every "
                "answer; call its eval() first"
            )
        self.values.check_given(x_t)

    @torch.no_grad()
    def encode(self, condition: Any) -> Encoded:
        """The prompts, which the model reads anew in every pass; or with what it made of them, once."""
        condition = checked_prompt(condition, self._ids)
        if condition is None or not self.prompt_cache:
            return condition
        prompt = condition if isinstance(condition, dict) else {"input_ids": condition}
        nothing = prompt["input_ids"].new_empty(len(prompt["input_ids"]), 0)
        inputs, first = self.inputs(nothing, condition)
        kept = first - int(self.shifted)  # the last one speaks of the first cell, in every pass
        if kept == 0:
            return condition
        inputs = {name: part[:, :kept] for name, part in inputs.items()}
        past = getattr(self._called(inputs, nothing.flatten(), use_cache=True), "past_key_values", None)
        if not past:
            raise InvalidInput(
                f"prompt_cache: {type(self.model).__name__} returns no past_key_values, so nothing of a prompt can be "
                "kept; leave prompt_cache out"
            )
        self._past_type = type(past)
        layers = past if isinstance(past, tuple | list) else [(one.keys, one.values) for one in past.layers]
        return {**prompt, "past": tuple((keys, values) for keys, values in layers)}

    @torch.no_grad()
    def log_probs(self, x_t: Tokens, encoded: Encoded) -> CellLogProbs:
        """The model's distribution at every cell, restricted to the values."""
        every = torch.arange(x_t.numel(), device=x_t.device)
        return self.log_probs_at_places(x_t, encoded, every).view(*x_t.shape, -1)

    @torch.no_grad()
    def log_probs_at(self, x_t: Tokens, encoded: Encoded, cells: Cells) -> Float[Tensor, "asked value"]:
        """The same at some cells: the model's output layer is computed there alone."""
        # They are looked up before the model runs: on a GPU nothing then waits for its pass to end.
        return self.log_probs_at_places(x_t, encoded, cells.flatten().nonzero().squeeze(-1))

    @torch.no_grad()
    def log_probs_at_places(
        self, x_t: Tokens, encoded: Encoded, places: Int[Tensor, " asked"]
    ) -> Float[Tensor, "asked value"]:
        """The same by the cells' numbers in reading order: nothing is looked up, and nothing waits."""
        inputs, first = self.inputs(x_t, encoded)
        row, cell = places // x_t.shape[1], places % x_t.shape[1]
        position = (first + cell - int(self.shifted)).clamp(min=0)  # shifted, a first cell is its own source
        if isinstance(encoded, dict) and "past" in encoded:
            kept = first - int(self.shifted)
            position = position - kept
            whole = ("attention_mask",)
            inputs = {name: part if name in whole else part[:, kept:] for name, part in inputs.items()}
            past: Any = encoded["past"]
            inputs["past_key_values"] = past if self._past_type in (tuple, list) else self._past_type(past)
        position = row * inputs["input_ids"].shape[1] + position
        return self.values.ended(self.values.normalised(self.logits(inputs, position)), x_t, places)

    def everywhere(self, inputs: dict[str, Tensor]) -> CellLogProbs:
        """Its distribution at every position of whole inputs: of revealed ones too, as if they were hidden."""
        ids = inputs["input_ids"]
        check_length(self.model, ids.shape[1])
        every = torch.arange(ids.numel(), device=ids.device)
        said = self.values.normalised(self.logits(inputs, every)).view(*ids.shape, -1)
        return torch.cat([said[:, :1], said[:, :-1]], dim=1) if self.shifted else said

    def _around_on(self, device: torch.device) -> list[Tensor]:
        """Prefix and suffix there, copied once: copying them anew would make the device wait."""
        if device not in self._around:
            self._around[device] = [
                torch.tensor(part, dtype=torch.int64, device=device) for part in (self.prefix, self.suffix)
            ]
        return self._around[device]

    def inputs(self, x_t: Tokens, encoded: Encoded) -> tuple[dict[str, Tensor], int]:
        """What the model is called with, and the position of the first cell."""
        ids, batch = self.values.on(x_t.device).ids, len(x_t)
        prefix, suffix = self._around_on(x_t.device)
        prompt = encoded["input_ids"] if isinstance(encoded, dict) else encoded
        before = [prefix.expand(batch, -1)]
        if prompt is not None:
            before.append(prompt)
        inputs = {"input_ids": torch.cat([*before, ids[x_t], suffix.expand(batch, -1)], dim=1)}
        first = sum(part.shape[1] for part in before)
        check_length(self.model, inputs["input_ids"].shape[1])
        padded = isinstance(encoded, dict) and "attention_mask" in encoded
        if padded or self.values.pad is not None:
            there = torch.ones_like(inputs["input_ids"])
            if isinstance(encoded, dict) and padded:
                there[:, len(self.prefix) : first] = encoded["attention_mask"]
            if self.values.pad is not None:
                there[:, first : first + x_t.shape[1]] = x_t != self.values.pad
            inputs["attention_mask"] = there
            inputs["position_ids"] = (there.cumsum(-1) - 1).clamp(min=0)
        return inputs, first

    def logits(self, inputs: dict[str, Any], places: Int[Tensor, " asked"]) -> Float[Tensor, "asked token"]:
        """The model's logits at some positions; its output layer is shown nothing else, where it can be found."""
        asked, logits = len(places), logits_of(self._called(inputs, places))
        if logits.dim() == 3:
            rows, length = inputs["input_ids"].shape
            if logits.shape[:2] != (rows, length):
                wanted = f"({rows}, {length}, token), one row for every position"
                raise InvalidInput(f"model: expected logits of shape {wanted}, got {tuple(logits.shape)}")
            logits = logits.flatten(0, 1)[places]
        if logits.dim() != 2 or len(logits) != asked or logits.shape[1] <= self.values.last:
            raise InvalidInput(
                f"model: expected logits for ids up to {self.values.last} at {asked} positions, got shape "
                f"{tuple(logits.shape)}"
            )
        return logits

    def _called(self, inputs: dict[str, Any], places: Int[Tensor, " asked"], **more: Any) -> Any:
        """What the model returns, its output layer shown some places alone, where it can be found."""
        found = getattr(self.model, "get_output_embeddings", lambda: None)()
        head = found if isinstance(found, torch.nn.Module) else None
        with ExitStack() as changed:
            if head is not None or self.adapter is not None:
                changed.enter_context(turn(self.model if head is None else head))
            if head is not None:
                changed.enter_context(head.register_forward_pre_hook(at_places(places)))
            changed.enter_context(self._with_adapter())
            return self.model(**understood(self.model, inputs), **more)

    def _with_adapter(self) -> AbstractContextManager[Any]:
        """The adapter of this expert in its place; others of the same model put theirs there before they speak."""
        model: Any = self.model
        if self.adapter == "":
            return model.disable_adapter()
        if self.adapter is not None:
            model.set_adapter(self.adapter)
        return nullcontext()


def of_adapters(
    model: Any, adapters: Sequence[str] | None = None, **settings: Any
) -> dict[str, MaskedLanguageModel]:
    """The adapters of a PEFT model as experts over one copy of its weights, each switched on before it speaks.

    All of them, or those named ("" is the base without any); `settings` are those of `MaskedLanguageModel`.
    """
    names = list(model.peft_config) if adapters is None else list(adapters)
    return {name or "base": MaskedLanguageModel(model, adapter=name, **settings) for name in names}
