"""Prompts for language models: ids, or what a tokenizer makes of texts of different lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.tensors import is_whole

Prompt = Int[Tensor, "item place"] | dict[str, Int[Tensor, "item place"]] | None


def checked_prompt(given: Any, ids: int | None) -> Prompt:
    """The prompts, padded on the left wherever their padding was: what follows is then next to them, in every model.

    `ids` is how many the model has, if that is known. Of a tokenizer's `token_type_ids` nothing is told to a model,
    which takes them for zeros.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        _check_ids(given, ids)
        return given
    found = dict(given)
    kinds = found.get("token_type_ids")
    if isinstance(kinds, Tensor) and not kinds.any():
        del found["token_type_ids"]
    if set(found) != {"input_ids", "attention_mask"}:
        raise InvalidInput(
            "condition: expected prompt ids, or a dict of input_ids and attention_mask, got one of "
            f"{', '.join(map(str, found)) or 'nothing'}"
        )
    prompt, there = found["input_ids"], found["attention_mask"]
    _check_ids(prompt, ids)
    if not isinstance(there, Tensor) or there.shape != prompt.shape:
        shape = tuple(there.shape) if isinstance(there, Tensor) else f"a {type(there).__name__}"
        raise InvalidInput(
            f"condition: expected an attention_mask of the shape of the input_ids, {tuple(prompt.shape)}, got {shape}"
        )
    order = (there != 0).long().argsort(dim=-1, stable=True)
    return {"input_ids": prompt.gather(-1, order), "attention_mask": there.gather(-1, order)}


def _check_ids(prompt: Any, ids: int | None) -> None:
    if not isinstance(prompt, Tensor) or prompt.dim() != 2 or not is_whole(prompt):
        tensor = isinstance(prompt, Tensor)
        shape = f"{prompt.dtype} of shape {tuple(prompt.shape)}" if tensor else f"a {type(prompt).__name__}"
        raise InvalidInput(
            "condition: expected prompts as whole ids of shape (item, place), such as "
            f"tokenizer(..., padding=True, return_tensors='pt'), got {shape}"
        )
    if ids is not None and prompt.numel() and not 0 <= int(prompt.min()) <= int(prompt.max()) < ids:
        raise InvalidInput(
            f"condition: expected prompts of ids 0 .. {ids - 1}, got {int(prompt.min())} .. {int(prompt.max())}"
        )
