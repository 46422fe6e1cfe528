"""What an expert is: two calls, encode once and log-probabilities at x_t."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.tensors import Numbers, as_tensor
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary


@runtime_checkable
class Expert(Protocol):
    """A frozen denoiser of x_0 given x_t and a condition.

    `encode` runs once per item; what it returns is opaque but must be a tensor whose first dimension is the
    item, None, or a tuple, named tuple or dict of such. `log_probs` runs once per pass, on the rows the
    sampler chooses, with the encoding of each row's item. Its values need not respect SUBS: the sampler
    never asks about revealed cells.

    An expert of a large vocabulary may also offer `log_probs_at(x_t, encoded, cells)`: the same at some cells only, in
    reading order (`experts.cell_outputs.SupportsCells`); or `log_probs_at_places`, which is told them by their numbers
    and waits for nothing (`SupportsPlaces`).

    One that says `thread_safe = True` may be asked by several threads at once, and is on a CPU: its two calls must
    then leave nothing behind.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """The values it speaks about."""

    def encode(self, condition: Any) -> Any:
        """What `log_probs` needs to know about each item, computed once."""

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """Normalised log-probabilities of every value at every cell."""


class LeftOut(NamedTuple):
    """One demonstration of every item made a question: what an expert is told, the right answer, and who has it."""

    condition: Any
    answers: Int[Tensor, "item cell"]
    present: Bool[Tensor, " item"]  # items with this demonstration and at least one other


@runtime_checkable
class ChecksGiven(Protocol):
    """An expert that looks at given cells before a run, and refuses what it cannot read."""

    def check_given(self, x_t: Tokens) -> None:
        """Raise `InvalidInput` for values that mean nothing to it."""


@runtime_checkable
class Demonstrated(Protocol):
    """A condition that shows examples can offer them as questions: then experts can be scored on them."""

    def leave_one_out(self) -> Sequence[LeftOut]:
        """Each demonstration in turn as the question, with the others as its demonstrations."""


def thread_safe(experts: Sequence[Expert]) -> bool:
    """Whether all of them may be asked by several threads at once."""
    return all(getattr(expert, "thread_safe", False) is True for expert in experts)


def substitute(
    logits: Float[Tensor, "batch cell value_or_mask"] | Numbers, x_t: Tokens | Numbers, vocabulary: Vocabulary
) -> CellLogProbs:
    """SUBS: MASK is never predicted, and a revealed cell copies itself with probability one.

    `logits` may carry a last entry for MASK; it is dropped, which is a logit of -inf.

    Paper: section "Masked Diffusion on Grids" and Eq. (21).
    """
    x_t = x_t if isinstance(x_t, Tensor) else _listed_tokens(x_t, vocabulary)
    logits = logits if isinstance(logits, Tensor) else _listed_logits(logits)
    if logits.shape[:-1] != x_t.shape or logits.shape[-1] < vocabulary.size or logits.is_complex():
        raise InvalidInput(
            f"logits: expected {vocabulary.size} real numbers, or one more for the mask, for each of the cells "
            f"{tuple(x_t.shape)} of x_t, got {logits.dtype} of shape {tuple(logits.shape)}"
        )
    if x_t.dtype != torch.int64:
        raise InvalidInput(f"x_t: expected int64 tokens, got {x_t.dtype}")
    log_probs = torch.log_softmax(logits[..., : vocabulary.size].float(), dim=-1)
    revealed = x_t != vocabulary.mask
    point_mass = torch.full_like(log_probs, -torch.inf)
    point_mass.scatter_(-1, x_t.clamp(max=vocabulary.size - 1).unsqueeze(-1), 0.0)
    return torch.where(revealed.unsqueeze(-1), point_mass, log_probs)


def _listed_tokens(given: Numbers, vocabulary: Vocabulary) -> Tokens:
    """What a person wrote down is looked at; to look at a tensor of a pass would wait for the device."""
    x_t = as_tensor("x_t", given)
    if x_t.numel() and not 0 <= float(x_t.min()) <= float(x_t.max()) <= vocabulary.mask:
        raise InvalidInput(
            f"x_t: expected values 0 .. {vocabulary.size - 1} or the mask {vocabulary.mask}, "
            f"got {x_t.min().item()} .. {x_t.max().item()}"
        )
    return x_t


def _listed_logits(given: Numbers) -> Tensor:
    logits = as_tensor("logits", given)
    if logits.isnan().any():
        raise InvalidInput("logits: expected real numbers, got NaN")
    return logits


def described(said: Any) -> str:
    """What an expert returned, for the sentence that refuses it."""
    if isinstance(said, Tensor):
        return f"log-probabilities of shape {tuple(said.shape)}"
    return f"a {type(said).__name__}, no tensor"


def mapped(nested: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure of tuples, named tuples and mappings (a tokenizer's, too), with all that they hold changed."""
    if isinstance(nested, Mapping):
        return {key: mapped(part, change) for key, part in nested.items()}
    if isinstance(nested, tuple):
        parts = [mapped(part, change) for part in nested]
        return type(nested)(*parts) if hasattr(nested, "_fields") else tuple(parts)
    return change(nested)


def take(encoded: Any, rows: Tensor) -> Any:
    """The encodings of the given items, one per row, whatever the encoding is made of."""
    return None if encoded is None else mapped(encoded, partial(_taken, rows=rows))


def _taken(part: Any, rows: Tensor) -> Any:
    if part is None or isinstance(part, Tensor):
        return None if part is None else part[rows]
    raise InvalidInput(
        f"encoded: expected None, a tensor, or a tuple or dict of such, got {type(part).__name__}; "
        "an expert's encode() must return something whose first dimension is the item"
    )


def tensors_of(nested: Any) -> list[Tensor]:
    """The tensors of an encoding, in a fixed order."""
    if isinstance(nested, Tensor):
        return [nested]
    parts: Sequence[Any] = (
        list(nested.values()) if isinstance(nested, dict) else nested if isinstance(nested, tuple) else []
    )
    return [tensor for part in parts for tensor in tensors_of(part)]


def rebuilt(nested: Any, tensors: Iterator[Tensor]) -> Any:
    """The same structure around other tensors, taken from an iterator in the order of `tensors_of`."""
    return mapped(nested, lambda part: next(tensors) if isinstance(part, Tensor) else part)
