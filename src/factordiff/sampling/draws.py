"""The random numbers of a batch of rows: each belongs to its row's item and particle, not to the batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.streams import Purpose, uniform


@dataclass(frozen=True)
class Draws:
    """Uniforms keyed by (seed, purpose, item, particle, step, cell)."""

    seed: int
    item: Int[Tensor, " batch"]
    particle: Int[Tensor, " batch"]

    def rows(self, purpose: Purpose, step: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """One number per row."""
        return uniform(self.seed, purpose, self.item, self.particle, step)

    def cells(self, purpose: Purpose, step: Int[Tensor, " batch"], cells: int) -> Float[Tensor, "batch cell"]:
        """One number per row and cell."""
        cell = torch.arange(cells, device=self.item.device)[None, :]
        return uniform(self.seed, purpose, self.item[:, None], self.particle[:, None], step[:, None], cell)

    def __getitem__(self, rows: Tensor) -> Draws:
        return Draws(self.seed, self.item[rows], self.particle[rows])


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
