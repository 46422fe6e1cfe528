"""How much training text experts reproduce: what they write on their own, and what they restore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.experts.expert import Expert
from factordiff.sampling.reveal import Ancestral, ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.types import Tokens

LENGTH = 20  # characters of a stretch that counts
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no character is lost
CHUNK = 4_000_000  # places of the corpus at once
ROWS = 32  # of one pass
STEPS = 128  # of the reverse process

Stream = UInt8[np.ndarray, " place"]


@dataclass(frozen=True)
class Verbatim:
    """Shares of stretches: those written from nothing that occur in the training text, and those put back exactly.

    Beside each stands what it is to be held against: held-out text has stock phrases too, and a hidden stretch of it
    can be guessed from its surroundings without having been seen.
    """

    written: float  # of stretches drawn from nothing, that occur in the training text
    held_out: float  # of stretches of held-out text, that occur in the training text
    restored_train: float  # of hidden stretches of training text, that are put back exactly
    restored_held_out: float  # the same for held-out text


def stretches(cells: Stream, length: int = LENGTH) -> np.ndarray:
    """A 64-bit number for every stretch of that many characters; two that differ share one with chance 2^-64."""
    if len(cells) < length:
        return np.empty(0, np.uint64)
    found = np.zeros(len(cells) - length + 1, np.uint64)
    text = cells.astype(np.uint64) + np.uint64(1)
    for place in range(length):
        found = (found ^ (found >> np.uint64(29))) * BASE + text[place : place + len(found)]
    return found * BASE


def occurs(asked: np.ndarray, corpus: Stream, length: int = LENGTH) -> Bool[np.ndarray, " stretch"]:
    """Which of the numbered stretches occur anywhere in the corpus, which is read part by part."""
    wanted, back = np.unique(asked, return_inverse=True)
    found = np.zeros(len(wanted), dtype=bool)
    for start in range(0, len(corpus), CHUNK):
        here = stretches(corpus[start : start + CHUNK + length - 1], length)
        place = np.searchsorted(wanted, here).clip(max=max(len(wanted) - 1, 0))
        found[place[wanted[place] == here]] = True
    return found[back]


def share_that_occurs(rows: Int[Tensor, "row cell"], corpus: Stream, length: int = LENGTH) -> float:
    """Of all stretches inside the rows, the share that occurs in the corpus."""
    asked = [stretches(row.astype(np.uint8), length) for row in rows.cpu().numpy()]
    return float(occurs(np.concatenate(asked), corpus, length).mean())


@torch.no_grad()
def restored(
    experts: Sequence[Expert], composition: Composition, rows: Tokens, length: int = LENGTH
) -> float:
    """The share of rows whose middle stretch, hidden, is put back exactly, surest character first."""
    mask = experts[0].vocabulary.mask
    first = (rows.shape[1] - length) // 2
    x_t = rows.clone()
    x_t[:, first : first + length] = mask
    right = 0
    for some, clean in zip(x_t.split(ROWS), rows.split(ROWS), strict=True):
        filled = sample(experts, composition, some, reveal=ByConfidence(length)).x_0
        right += int((filled == clean).all(-1).sum())
    return right / len(rows)


@torch.no_grad()
def written(
    experts: Sequence[Expert],
    composition: Composition,
    blank: Tokens,
    steps: int | None = None,
    seed: int = 0,
) -> Tokens:
    """Text drawn from nothing, by the reverse process: `blank` is as many rows of masks as are wanted."""
    rule, item = Ancestral(steps or STEPS), torch.arange(len(blank), device=blank.device)
    drawn = [
        sample(experts, composition, some, reveal=rule, temperature=1.0, seed=seed, items=items).x_0
        for some, items in zip(blank.split(ROWS), item.split(ROWS), strict=True)
    ]
    return torch.cat(drawn)


def verbatim(
    experts: Sequence[Expert], composition: Composition, corpus: Stream, train: Tokens, held_out: Tokens
) -> Verbatim:
    """Measure with windows of training and of held-out text, and as many that are drawn from nothing."""
    drawn = written(experts, composition, torch.full_like(held_out, experts[0].vocabulary.mask))
    return Verbatim(
        share_that_occurs(drawn, corpus),
        share_that_occurs(held_out, corpus),
        restored(experts, composition, train),
        restored(experts, composition, held_out),
    )
