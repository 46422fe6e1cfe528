"""How language models differ in the way they are called: which inputs they take, and how many positions they have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.schema.bound import shown
from factordiff.tensors import as_number

# Models that count positions from behind the padding token's id, and number them by themselves where there is padding.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "esm")
# Models that hand `attention_mask` to their attention as it is: one that says which positions are there will not do.
MASKS_OF_ATTENTION = ("dream",)

_TURNS: WeakKeyDictionary[Any, Lock] = WeakKeyDictionary()
_OF_TURNS = Lock()


def turn(part: Any) -> Lock:
    """What to hold while a hook or an adapter of this part of a model is in place: other threads see it there too."""
    with _OF_TURNS:
        return _TURNS.setdefault(part, Lock())


def at_places(places: Tensor) -> Callable[..., Any]:
    """A hook before an output layer: it is shown these positions alone."""
    return lambda _, given: (given[0].flatten(0, 1)[places], *given[1:]) if given[0].dim() == 3 else None


def kind(model: Any) -> str:
    """What its config calls it, in small letters."""
    return str(getattr(getattr(model, "config", None), "model_type", "")).lower()


def understood(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs in the form that the model takes; positions, counted from 0, where it can be told them so."""
    found = dict(inputs)
    if "position_ids" in found and not takes_positions(model):
        del found["position_ids"]
    mask = found.get("attention_mask")
    if mask is not None and mask.dim() == 2 and kind(model) in MASKS_OF_ATTENTION:
        found["attention_mask"] = mask.to(torch.bool)[
            :, None, None, :
        ]  # for every head and every position that reads
    return found


def logits_of(output: Any) -> Tensor:
    """The logits of what a model returns: an output that names them, a dict, a tuple that begins with them, or they."""
    found = getattr(output, "logits", output)
    if isinstance(found, Mapping):
        found = found.get("logits")
    if isinstance(found, tuple | list) and found:
        found = found[0]
    if not isinstance(found, Tensor):
        raise InvalidInput(
            f"model: expected logits, or an output with `.logits`, got {type(output).__name__}; wrap the model in a "
            "function of input_ids that returns them"
        )
    return found


def takes_positions(model: Any) -> bool:
    """Whether it can be told `position_ids` from 0 on: not where it numbers them by itself, nor LLaDA by distances.

    Of a PEFT model, whether its base can.
    """
    if kind(model) in OFFSET_POSITIONS:
        return False
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    taken = inspect.signature(getattr(base, "forward", base)).parameters
    return "position_ids" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())


def check_length(model: Any, length: int) -> None:
    """Refuse more positions than it has."""
    config = getattr(model, "config", None)
    told = (getattr(config, name, None) for name in ("max_position_embeddings", "max_sequence_length"))
    most = next((one for one in told if one is not None), None)
    if most is None or getattr(config, "position_embedding_type", None) == "rotary":
        return
    if kind(model) in OFFSET_POSITIONS:
        most -= (getattr(config, "pad_token_id", None) or 0) + 1
    if length > most:
        raise InvalidInput(
            f"x_t: {length} positions, with prompt and what surrounds the cells, but the model has {most}; use "
            "fewer cells or a shorter prompt"
        )


def mask_token_of(given: int | None, model: Any, tokenizer: Any) -> int:
    """The mask's id: as given, or as the tokenizer or the model's config names it."""
    told = (
        given,
        getattr(tokenizer, "mask_token_id", None),
        getattr(getattr(model, "config", None), "mask_token_id", None),
    )
    found = next((one for one in told if one is not None), None)
    if found is None:
        raise InvalidInput(
            "mask_token: neither the tokenizer nor the model's config names one; give its id, or use a masked model"
        )
    checked = check_ids("mask_token", [found])[0]
    rows = getattr(getattr(model, "get_input_embeddings", lambda: None)(), "num_embeddings", None)
    if rows is not None and checked >= rows:
        raise InvalidInput(
            f"mask_token: the model reads ids 0 .. {rows - 1}, got {checked}; where a tokenizer was given a mask, the "
            "model needs resize_token_embeddings(len(tokenizer)), and training"
        )
    return checked


def check_ids(name: str, ids: Iterable[Any], model: Any = None) -> tuple[int, ...]:
    """These ids; refused where they are none, or, of a model that says how many ids it has, none of them."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InvalidInput(f"{name}: expected ids of tokens in a row, such as [7], got {shown(ids)}")
    given = tuple(as_number(one) for one in ids)
    most = getattr(getattr(model, "config", None), "vocab_size", None)
    for one in given:
        whole = isinstance(one, int) and not isinstance(one, bool)
        if not whole or one < 0 or (most is not None and one >= most):
            wanted = "whole numbers" if most is None else f"0 .. {most - 1}"
            raise InvalidInput(f"{name}: expected ids of tokens, {wanted}, got {one!r}")
    return given


def ids_of(model: Any) -> int:
    """How many ids it has."""
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if size is None:
        raise InvalidInput("tokens: the model's config has no vocab_size; give the ids that are values")
    return int(size)
