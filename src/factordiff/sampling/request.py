"""What may be asked of the sampler: every argument checked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.vocabulary import Vocabulary

Selection = Literal["draw", "highest-target", "vote", "first"]
SELECTIONS = ("draw", "highest-target", "vote", "first")


def common_vocabulary(experts: Sequence[Expert]) -> Vocabulary:
    """The one vocabulary that all experts speak."""
    if len(experts) == 0:
        raise InvalidInput("experts: expected at least one expert, got none")
    sizes = [expert.vocabulary.size for expert in experts]
    if len(set(sizes)) > 1:
        raise InvalidInput(f"experts: expected one vocabulary for all, got vocabularies of sizes {sizes}")
    return experts[0].vocabulary


def check_tokens(x_t: Tensor, vocabulary: Vocabulary) -> None:
    """Refuse anything but values and masks."""
    if x_t.dim() != 2 or x_t.dtype != torch.int64:
        raise InvalidInput(
            f"x_t: expected int64 tokens of shape (item, cell), got {x_t.dtype} of shape {tuple(x_t.shape)}"
        )
    if x_t.numel() and not 0 <= int(x_t.min()) <= int(x_t.max()) <= vocabulary.mask:
        raise InvalidInput(
            f"x_t: expected values 0 .. {vocabulary.size - 1} or the mask {vocabulary.mask}, "
            f"got {int(x_t.min())} .. {int(x_t.max())}"
        )


def check_particles(particles: int, temperature: float, selection: str, corrected: bool) -> None:
    """Refuse counts, temperatures and selections that make no sense together."""
    if not 0 <= temperature < float("inf"):
        raise InvalidInput(f"temperature: expected 0 (argmax) or a finite positive number, got {temperature}")
    if isinstance(particles, bool) or not isinstance(particles, int) or particles < 1:
        raise InvalidInput(f"particles: expected a whole number of at least 1, got {particles!r}")
    if selection not in SELECTIONS:
        raise InvalidInput(f"selection: expected one of {', '.join(SELECTIONS)}, got {selection!r}")
    if corrected and temperature == 0:
        raise InvalidInput(
            "temperature: a corrected composition needs drawn values (temperature > 0); "
            "with argmax all its particles would be the same"
        )
    if selection == "highest-target" and not corrected:
        raise InvalidInput(
            "selection: 'highest-target' needs a composition with a target (feynman_kac, rne); "
            "use 'draw', 'vote' or 'first'"
        )


def check_seed(seed: int) -> None:
    """Refuse seeds that would be cut to whole numbers in silence."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidInput(f"seed: expected a whole number, got {seed!r}")


def check_encoded(encoded: Any, items: int) -> None:
    """Refuse encodings of another number of items than there are, before any is taken for another's."""
    parts = encoded.values() if isinstance(encoded, dict) else encoded if isinstance(encoded, tuple) else ()
    for part in parts:
        check_encoded(part, items)
    if isinstance(encoded, Tensor) and (encoded.dim() == 0 or len(encoded) != items):
        size = "a single number" if encoded.dim() == 0 else f"an encoding of {len(encoded)}"
        raise InvalidInput(f"condition: expected one for each of {items} items, got {size}")


def item_ids(items: Tensor | None, x_t: Tensor) -> Tensor:
    """The ids that random numbers belong to: the given ones, or 0, 1, 2, ..."""
    if items is None:
        return torch.arange(len(x_t), device=x_t.device)
    if items.shape != (len(x_t),) or items.is_floating_point():
        raise InvalidInput(
            f"items: expected {len(x_t)} whole-number ids, one per item, got shape {tuple(items.shape)}"
        )
    return items.to(x_t.device)
