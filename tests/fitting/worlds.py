"""Data for fits: the cycle of over-confidence, and two experts that each own half of a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from factordiff.fitting.data import FittingData
from factordiff.toy.overconfidence import CELLS, VALUES, cycle, owners
from factordiff.vocabulary import Vocabulary


def cyclic(items: int = 64, seed: int = 0) -> tuple[list[Any], FittingData]:
    """The three experts, and drawn answers with their owners."""
    answers = torch.from_numpy(np.random.default_rng(seed).integers(0, VALUES, (items, CELLS)))
    return list(cycle()), FittingData(answers, answers, owner=owners().expand(items, -1))


class Half:
    """Right with chance 0.7 in its own half of a line; in the other it claims value 0, surer still."""

    vocabulary = Vocabulary(3)

    def __init__(self, own: int, cells: int = 8) -> None:
        self.home = (torch.arange(cells) * 2 // cells) == own
        self.passes = 0

    def encode(self, condition: Tensor) -> Tensor:
        return condition

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        self.passes += len(x_t)
        said = torch.where(self.home, encoded, 0)
        chance = torch.where(self.home, 0.7, 0.9).double()
        others = ((1 - chance) / 2)[None, :, None].expand(*said.shape, 3)
        return others.scatter(-1, said[..., None], chance[None, :, None].expand(*said.shape, 1)).log()


def halves(items: int = 40, cells: int = 8, seed: int = 0) -> tuple[list[Half], FittingData]:
    """Two of them, and answers that are never 0: who claims 0 is wrong."""
    answers = 1 + torch.from_numpy(np.random.default_rng(seed).integers(0, 2, (items, cells)))
    owner = (torch.arange(cells) * 2 // cells).expand(items, -1)
    return [Half(0, cells), Half(1, cells)], FittingData(
        answers, answers, layout=(2, cells // 2), owner=owner
    )
