"""Data for fits: the cycle of over-confidence, two that each own half of a line, and a mixture that is the truth."""

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


class Said:
    """Says what the condition holds for it: nothing tells experts apart but their place."""

    def __init__(self, number: int, values: int = 3) -> None:
        self.number, self.vocabulary = number, Vocabulary(values)

    def encode(self, condition: Tensor) -> Tensor:
        return condition[:, self.number]

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        return encoded


def mixed(
    weights: tuple[float, ...], items: int, seed: int = 0, cells: int = 8
) -> tuple[list[Any], FittingData]:
    """Experts that say something drawn at every cell, and answers from their mixture: no router can do better."""
    random = np.random.default_rng(seed)
    drawn = torch.from_numpy(2 * random.standard_normal((items, len(weights), cells, 3)))
    said = torch.log_softmax(drawn, -1)
    chances = torch.einsum("m,imcv->icv", torch.tensor(weights).double(), said.exp())
    answers = (torch.from_numpy(random.random((items, cells, 1))) > chances.cumsum(-1)[..., :-1]).sum(-1)
    return [Said(number) for number in range(len(weights))], FittingData(answers, said)
