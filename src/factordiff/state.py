"""What the sampling loop carries from step to step: compositions and reveal rules read it, a step makes another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.streams import Draws
from factordiff.types import Cells, LogDensities, Tokens


@dataclass(frozen=True)
class SamplerState:
    r"""One row for every particle of every item; the particles of an item stand side by side.

    `log_density` is $\log p_m(x_i \mid x_t)$ of each revealed cell, as expert m saw it when it was revealed, and
    0 where nothing was, given cells included.
    """

    x_t: Tokens
    mask: int
    log_density: Float[Tensor, "expert batch cell"]
    log_w: Float[Tensor, " batch"]
    clock: Int[Tensor, " batch"]  # steps so far; the particles of an item share it
    item: Int[Tensor, " batch"]  # which item of the request a row belongs to
    draws: Draws  # the random numbers that belong to it
    start: Cells  # the cells that were masked when it began: the others are given
    particles: int = 1
    log_doubt: Float[Tensor, "batch cell"] | None = None  # of committed cells, for rules that repair
    repairs: Int[Tensor, " batch"] | None = None  # how many are left

    @classmethod
    def begin(
        cls,
        x_t: Int[Tensor, "item cell"],
        mask: int,
        experts: int,
        *,
        particles: int = 1,
        seed: int = 0,
        ids: Int[Tensor, " item"] | None = None,
        repairs: int = 0,
    ) -> SamplerState:
        """Every particle of every item at its start, unweighted; `ids` are whom random numbers belong to."""
        item = torch.arange(len(x_t), device=x_t.device).repeat_interleave(particles)
        particle = torch.arange(particles, device=x_t.device).repeat(len(x_t))
        draws = Draws(seed, item if ids is None else ids[item], particle)
        rows, clock = x_t[item], torch.zeros_like(item)
        nothing = torch.zeros(experts, *rows.shape, dtype=torch.float64, device=x_t.device)
        log_w = clock.to(torch.float64)
        state = cls(rows, mask, nothing, log_w, clock, item, draws, rows == mask, particles)
        if not repairs:
            return state
        certain = torch.full_like(nothing[0], -torch.inf)  # as given cells are: no repair takes them back
        return replace(state, log_doubt=certain, repairs=clock + repairs)

    def __len__(self) -> int:
        return len(self.x_t)

    def __repr__(self) -> str:
        rows, cells = self.x_t.shape
        return f"SamplerState({rows} rows of {cells} cells, {int(self.masked.sum())} of them masked)"

    @property
    def masked(self) -> Cells:
        """The cells still hidden."""
        return self.x_t == self.mask

    @property
    def log_density_of_rows(self) -> LogDensities:
        r"""$\ell_m = \log p_m(x_U)$ along each row's path, expert by expert."""
        return self.log_density.sum(-1)
