"""Three experts in a cycle of over-confidence: each knows one cell, and is surest of the next one, where it is wrong.

No product and no mixture with one number per expert gets more than two of the three cells right, since each owner would
have to outweigh the next; who is surest is wrong everywhere; a choice per cell gets all three.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

CELLS, VALUES = 3, 4
KNOWS, CLAIMS = 0.8, 0.97  # the probability of what it knows, and of what it wrongly believes


class OverConfident:
    """Knows its own cell fairly well, believes firmly what is wrong of the next, and nothing of the third."""

    vocabulary = Vocabulary(VALUES)

    def __init__(self, own: int) -> None:
        self.own = own

    def encode(self, condition: Int[Tensor, "item cell"]) -> Int[Tensor, "item cell"]:
        """What is right of each item: where it looks, it sees it."""
        return condition

    def log_probs(self, x_t: Tokens, encoded: Int[Tensor, "batch cell"]) -> CellLogProbs:
        """The right value at its own cell, the one after it at the next, all alike at the third."""
        cell = torch.arange(CELLS, device=x_t.device)
        ahead = (cell - self.own) % CELLS  # 0 its own, 1 the next, 2 the third
        said = torch.where(ahead == 1, (encoded + 1) % VALUES, encoded)
        sure = torch.tensor([KNOWS, CLAIMS, 1 / VALUES], dtype=torch.float64, device=x_t.device)[ahead]
        others = ((1 - sure) / (VALUES - 1))[None, :, None].expand(*said.shape, VALUES)
        return others.scatter(-1, said[..., None], sure[None, :, None].expand(*said.shape, 1)).log()


def cycle() -> tuple[OverConfident, OverConfident, OverConfident]:
    """The three experts."""
    return OverConfident(0), OverConfident(1), OverConfident(2)


def owners() -> Int[Tensor, " cell"]:
    """The expert that knows each cell."""
    return torch.arange(CELLS)
