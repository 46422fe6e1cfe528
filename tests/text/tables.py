"""Experts of text by rule, for tests."""

from __future__ import annotations

import torch
from torch import Tensor

from factordiff.streams import Purpose, uniform
from factordiff.vocabulary import Vocabulary


class Noise:
    """Says something else at every cell, whatever is shown, from a fixed stream."""

    def __init__(self, seed: int, values: int = 5, sharp: float = 4.0) -> None:
        self.vocabulary, self.seed, self.sharp = Vocabulary(values), seed, sharp

    def encode(self, condition: None) -> None:
        return None

    def log_probs(self, x_t: Tensor, encoded: None) -> Tensor:
        cells = x_t.shape[1]
        # By what is given, not by the row's number: an item alone and in a batch must hear the same.
        key = (torch.where(x_t == self.vocabulary.mask, 0, x_t + 1) * torch.arange(1, cells + 1)).sum(-1)
        cell, value = torch.arange(cells)[None, :, None], torch.arange(self.vocabulary.size)
        drawn = uniform(self.seed, Purpose.INIT, key[:, None, None], cell, value)
        return torch.log_softmax(self.sharp * drawn, -1)


class Knows:
    """Sure of one sequence, wherever a window of it begins: it looks for what is given."""

    def __init__(self, text: Tensor, values: int, sure: float = 0.99) -> None:
        self.text, self.vocabulary, self.sure = text, Vocabulary(values), sure

    def encode(self, condition: None) -> None:
        return None

    def log_probs(self, x_t: Tensor, encoded: None) -> Tensor:
        windows = self.text.unfold(0, x_t.shape[1], 1)
        given = x_t[:, None] != self.vocabulary.mask
        place = ((windows[None] == x_t[:, None]) | ~given).all(-1).to(torch.int64)
        size = self.vocabulary.size
        said = torch.full((*x_t.shape, size), 1.0 / size)
        found = place.any(-1)
        here = windows[place.argmax(-1)]
        sure = torch.full_like(said, (1 - self.sure) / (size - 1)).scatter(-1, here.unsqueeze(-1), self.sure)
        return torch.where(found[:, None, None], sure, said).log()
