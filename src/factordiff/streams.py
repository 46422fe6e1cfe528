"""Counter-based randomness: every number is a pure function of its key.

A key is a tuple of words such as (seed, purpose, item, particle, step, cell). The same key gives the same
number on CPU and GPU, alone or inside a batch, in any order and after any restart. No generator, no state.

The hash chains the SplitMix64 finaliser (Steele, Lea and Flood 2014) over the words. All arithmetic is in
int64, which wraps the same way on every device.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Word = int | Tensor


class Purpose(IntEnum):
    """What a number is drawn for. Two purposes never share a stream."""

    TOKEN = 1  # the value of a revealed cell
    REVEAL = 2  # whether a cell is revealed (ancestral)
    EXPERT = 3  # which expert speaks in a step: for a whole row (SuperDiff) or a factor of it
    RESAMPLE = 4  # the offset of systematic resampling
    SELECT = 5  # which particle is returned
    TIME = 6  # the diffusion time of a training item
    CORRUPT = 7  # which cells a training item hides
    QUERY = 8  # which pair a training item asks about
    CONTEXT = 9  # which pairs it is shown
    SYMMETRY = 10  # under which symmetry
    INSTANCE = 11  # one attempt of a task's generator
    INIT = 12  # initial weights
    EVALUATION = 13  # the fixed evaluation list
    BOOTSTRAP = 14  # resampled tasks and queries
    RENAMING = 15  # how a training item's values are renamed
    SET = 16  # which of two sets of instances it comes from
    FOLD = 17  # with which others a given cell is hidden, to be scored
    FIT = 18  # which rows a step of a router's fit looks at


def _signed(word: int) -> int:
    """The 64-bit word as the int64 with the same bits."""
    word &= _64_BITS
    return word - (1 << 64) if word >> 63 else word


_64_BITS = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_SIGNED_GOLDEN, _SIGNED_MIX_1, _SIGNED_MIX_2 = _signed(_GOLDEN), _signed(_MIX_1), _signed(_MIX_2)
# What is left of 64 bits after a shift to the right: int64's own shift copies the sign.
_AFTER_27, _AFTER_30, _AFTER_31 = _64_BITS >> 27, _64_BITS >> 30, _64_BITS >> 31


def _finalise(bits: Tensor) -> Tensor:
    bits = (bits ^ (bits >> 30 & _AFTER_30)) * _SIGNED_MIX_1
    bits = (bits ^ (bits >> 27 & _AFTER_27)) * _SIGNED_MIX_2
    return bits ^ (bits >> 31 & _AFTER_31)


def _finalise_number(bits: int) -> int:
    """The same for a Python number of 64 bits."""
    bits = (bits ^ bits >> 30) * _MIX_1 & _64_BITS
    bits = (bits ^ bits >> 27) * _MIX_2 & _64_BITS
    return bits ^ bits >> 31


def hash_words(*words: Word) -> Tensor:
    """64 well-mixed bits (as int64) for a key; tensor words broadcast against each other.

    The order of the words matters: (1, 2) and (2, 1) are different keys, and so are (1,) and (1, 0).
    """
    # A key begins with Python numbers (seed, purpose); mixing them as such spares a dozen tensor operations a word.
    start = 0
    leading = next((place for place, word in enumerate(words) if isinstance(word, Tensor)), len(words))
    for word in words[:leading]:
        start = _finalise_number(((start ^ int(word)) + _GOLDEN) & _64_BITS)
    bits: Any = _signed(start)  # a number until the first tensor comes
    for word in words[leading:]:
        word_bits = word.to(torch.int64) if isinstance(word, Tensor) else _signed(int(word))
        bits = _finalise((word_bits ^ bits) + _SIGNED_GOLDEN)
    return bits if isinstance(bits, Tensor) else torch.tensor(bits)


def uniform(*words: Word, dtype: torch.dtype = torch.float64) -> Tensor:
    """A uniform number in [0, 1) for a key: the top 53 bits (24 for float32) of its hash."""
    digits = 24 if dtype == torch.float32 else 53
    top = (hash_words(*words) >> (64 - digits)) & ((1 << digits) - 1)
    return top.to(dtype) * 2.0**-digits


def integers(high: Word, *words: Word) -> Tensor:
    """A whole number in 0 .. high-1 for a key (bias below high / 2**53)."""
    return (uniform(*words) * high).floor().to(torch.int64)


@dataclass(frozen=True)
class Draws:
    """The random numbers of a batch of rows: each belongs to its row's item and particle, not to the batch."""

    seed: int
    item: Int[Tensor, " batch"]
    particle: Int[Tensor, " batch"]
    cell: Int[Tensor, "batch cell"] | None = None  # which cells the rows hold, if not all of them in order

    def rows(self, purpose: Purpose, step: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """One number per row."""
        return uniform(self.seed, purpose, self.item, self.particle, step)

    def cells(self, purpose: Purpose, step: Int[Tensor, " batch"], cells: int) -> Float[Tensor, "batch cell"]:
        """One number per row and cell."""
        cell = torch.arange(cells, device=self.item.device)[None, :] if self.cell is None else self.cell
        return uniform(self.seed, purpose, self.item[:, None], self.particle[:, None], step[:, None], cell)

    def factors(
        self, purpose: Purpose, step: Int[Tensor, " batch"], labels: Int[Tensor, "batch cell"]
    ) -> Float[Tensor, "batch cell"]:
        """One number per row and label, written at every cell of that label; label 0 has the row's own number."""
        key = (self.seed, purpose, self.item[:, None], self.particle[:, None], step[:, None])
        return torch.where(labels == 0, self.rows(purpose, step)[:, None], uniform(*key, labels))

    def __getitem__(self, rows: Tensor | slice) -> Draws:
        cell = None if self.cell is None else self.cell[rows]
        return Draws(self.seed, self.item[rows], self.particle[rows], cell)


def categorical(
    log_probs: Float[Tensor, "*shape value"], uniforms: Float[Tensor, "*shape"]
) -> Int[Tensor, "*shape"]:
    """The value whose stretch of the cumulative distribution holds the uniform; never one of probability zero."""
    probs = torch.softmax(log_probs.double(), dim=-1)
    cumulative = probs.cumsum(-1)
    position = uniforms.unsqueeze(-1) * cumulative[..., -1:]
    drawn = (cumulative <= position).sum(-1)
    last_possible = probs.shape[-1] - 1 - (probs > 0).flip(-1).to(torch.uint8).argmax(-1)
    return torch.minimum(drawn, last_possible)
