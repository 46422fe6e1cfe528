"""What may be asked of the sampler: every argument checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, SupportsFloat, get_args

import numpy as np
import torch
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.method import Selection
from factordiff.composition.options import check_sizes
from factordiff.devices import memory_of
from factordiff.errors import InvalidInput
from factordiff.experts.expert import ChecksGiven, Expert
from factordiff.sampling.reveal import RevealRule
from factordiff.schema.bound import shown
from factordiff.tensors import as_number
from factordiff.types import LARGE
from factordiff.vocabulary import Vocabulary

SELECTIONS = get_args(Selection)
COPIES = 8  # of a row's log-probabilities that a step may hold at once
SURELY_THERE = 2**28  # bytes that need no look at the memory


def check_request(
    experts: Sequence[Expert],
    composition: Composition,
    rule: RevealRule,
    x_t: Tensor,
    temperature: float,
    particles: int,
    selection: str,
    resampling: float,
    seed: int,
    items: Tensor | None,
    rows: int | None = None,
) -> None:
    """Refuse what cannot be; `rows` is how many are in flight at once (default: all)."""
    vocabulary = common_vocabulary(experts)
    check_tokens(x_t, experts)
    for name, given, kind in (("composition", composition, Composition), ("reveal", rule, RevealRule)):
        if not isinstance(given, kind):
            raise InvalidInput(
                f"{name}: expected a {kind.__name__}, got {shown(given)}; names are for `compose(experts, ...)`"
            )
    corrected = composition.target(len(experts)) is not None
    check_settings(temperature, particles, selection, resampling, rule.repairs, corrected)
    check_draws(seed, items, len(x_t))
    # Of a large vocabulary only what the experts say is held, in float32, and a whole composition of it at most.
    copies = 8 * COPIES * len(experts) if vocabulary.size <= LARGE else 4 * (len(experts) + 1)
    row_bytes = copies * x_t.shape[1] * vocabulary.size
    together = len(x_t) * particles if rows is None else rows
    if together * row_bytes > SURELY_THERE:
        check_memory(together, row_bytes, x_t.device)


def common_vocabulary(experts: Sequence[Expert]) -> Vocabulary:
    """The one vocabulary that all experts speak."""
    if len(experts) == 0:
        raise InvalidInput("experts: expected at least one expert, got none")
    for number, expert in enumerate(experts):
        if not hasattr(expert, "vocabulary"):
            raise InvalidInput(
                f"experts: number {number + 1} is {shown(expert)}, expected an object with vocabulary, encode and "
                "log_probs; experts by name, and names, are for `compose(experts, ...)`"
            )
    sizes = [expert.vocabulary.size for expert in experts]
    if len(set(sizes)) > 1:
        raise InvalidInput(f"experts: expected one vocabulary for all, got vocabularies of sizes {sizes}")
    if any(getattr(expert, "words", None) is not None for expert in experts):
        check_words(experts)
    return experts[0].vocabulary


def check_words(experts: Sequence[Expert]) -> None:
    """Refuse experts to whom the same value means different words (`experts.masked_lm`)."""
    spoken = [(number, getattr(expert, "words", None)) for number, expert in enumerate(experts)]
    known = [(number, words) for number, words in spoken if words is not None]
    for number, words in known[1:]:
        first, expected = known[0]
        if words is not expected and words != expected:
            word = min(expected.items() ^ words.items(), key=lambda pair: (pair[1], pair[0]))
            theirs = [name for name, token in (*expected.items(), *words.items()) if token == word[1]]
            raise InvalidInput(
                f"experts: numbers {first + 1} and {number + 1} have different tokenizers (token {word[1]} is "
                f"{' and '.join(map(repr, dict.fromkeys(theirs)))}), so one value would mean two words; use models of "
                "one tokenizer"
            )


def check_tokens(x_t: Tensor, experts: Sequence[Expert]) -> None:
    """Refuse anything but values and masks, and what an expert cannot read where it is given."""
    vocabulary = experts[0].vocabulary
    if x_t.dim() != 2 or x_t.dtype != torch.int64:
        raise InvalidInput(
            f"x_t: expected int64 tokens of shape (item, cell), got {x_t.dtype} of shape {tuple(x_t.shape)}"
        )
    if x_t.shape[1] == 0:
        raise InvalidInput(f"x_t: expected at least one cell, got shape {tuple(x_t.shape)}")
    if x_t.numel() and not 0 <= int(x_t.min()) <= int(x_t.max()) <= vocabulary.mask:
        raise InvalidInput(
            f"x_t: expected values 0 .. {vocabulary.size - 1} or the mask {vocabulary.mask}, "
            f"got {int(x_t.min())} .. {int(x_t.max())}"
        )
    for expert in experts:
        if isinstance(expert, ChecksGiven):
            expert.check_given(x_t)


def check_settings(
    temperature: float, particles: int, selection: str, resampling: float, repairs: int, corrected: bool
) -> None:
    """Refuse numbers and choices that make no sense, or none together."""
    if not isinstance(temperature, SupportsFloat) or not 0 <= temperature < float("inf"):
        raise InvalidInput(
            f"temperature: expected 0 (argmax) or a finite positive number, got {temperature!r}"
        )
    if temperature > 0:
        check_sizes("temperature", [float(temperature)])
    if isinstance(particles, bool) or not isinstance(particles, int) or particles < 1:
        raise InvalidInput(f"particles: expected a whole number of at least 1, got {particles!r}")
    if not 0 <= resampling <= 1:
        raise InvalidInput(
            f"resampling: expected a share of the particles, 0 (never) to 1 (after every step), got {resampling}"
        )
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
    if repairs and corrected:
        raise InvalidInput(
            "reveal: a rule that repairs cannot be used with a composition that has a target (feynman_kac, rne): "
            "their weights belong to the path"
        )


def check_draws(seed: int, items: Tensor | None, count: int) -> None:
    """Refuse what random numbers cannot belong to: a seed that would be cut in silence, ids of other items."""
    seed = seed if isinstance(seed, int) else as_number(seed)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidInput(f"seed: expected a whole number, got {seed!r}")
    if items is not None and (items.shape != (count,) or items.is_floating_point()):
        raise InvalidInput(
            f"items: expected {count} whole-number ids, one per item, got shape {tuple(items.shape)}"
        )


def check_condition(condition: Any, items: int) -> None:
    """Refuse conditions of another number of items than there are; what has no length is not counted."""
    parts = condition.values() if isinstance(condition, Mapping) else condition
    if isinstance(condition, Mapping | tuple):
        for part in parts:
            check_condition(part, items)
    elif isinstance(condition, Tensor | np.ndarray) and condition.ndim == 0:
        raise InvalidInput(f"condition: expected one for each of {items} items, got a single number")
    elif isinstance(condition, Sized) and len(condition) != items:
        raise InvalidInput(f"condition: expected one for each of {items} items, got {len(condition)}")


def check_memory(
    rows: int,
    bytes_per_row: int,
    device: torch.device,
    name: str = "particles",
    what: str = "rows (items x particles)",
    advice: str = "use fewer particles, or a batch of fewer rows",
) -> None:
    """Refuse more rows at once than this machine's memory holds, before anything is allocated."""
    memory = memory_of(device)
    if memory is not None and rows * bytes_per_row > memory:
        raise InvalidInput(
            f"{name}: {rows:,} {what} at once need about {rows * bytes_per_row / 2**30:.3g} GiB, this machine has "
            f"{memory / 2**30:.3g} GiB; {advice}"
        )


def check_trace(items: int, slots: int) -> None:
    """Refuse to trace items that are not all in flight together."""
    if items > slots:
        raise InvalidInput(
            f"trace: expected all items in flight together, got {items} items and a batch for {slots}; "
            "trace fewer items or use a larger batch"
        )
