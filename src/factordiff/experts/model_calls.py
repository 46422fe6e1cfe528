"""How language models differ in the way they are called: which inputs they take, and how many positions they have."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from factordiff.errors import InvalidInput

# Models that count positions from behind the padding token's id, and number them by themselves where there is padding.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "esm")
# Models that hand `attention_mask` to their attention as it is: one that says which positions are there will not do.
MASKS_OF_ATTENTION = ("dream",)


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
    found = next((int(one) for one in told if one is not None), None)
    if found is None:
        raise InvalidInput(
            "mask_token: neither the tokenizer nor the model's config names one; give its id, or use a masked model"
        )
    return found


def ids_of(model: Any) -> int:
    """How many ids it has."""
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if size is None:
        raise InvalidInput("tokens: the model's config has no vocab_size; give the ids that are values")
    return int(size)
