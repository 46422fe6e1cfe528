"""Several reveal orders of one item side by side: each particle fills blocks of another length from left to right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.sampling.reveal import RevealRule, Wrapped
from factordiff.state import SamplerState
from factordiff.types import Cells


@dataclass(frozen=True)
class InBlocks(Wrapped):
    r"""Another rule inside blocks: a block is full before the next is begun, and its length depends on the particle.

    Particle k has blocks of $\lceil N / 2^k \rceil$ of the N cells that its row began with masked, in their order: the
    first has one block, which is the rule itself, and the last of those that differ goes cell by cell. Particles
    beyond that begin again with the first.
    """

    rule: RevealRule

    def due(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """The rule's first step at which it may reveal a cell of the block."""
        step, hidden = self.rule.due(state), state.masked.any(-1)
        while not self.rule.steady:  # a rule that draws its cells may draw some beyond the block alone
            idle = hidden & ~self.candidates(replace(state, clock=step)).any(-1)
            if not idle.any():
                break
            step = torch.where(idle, self.rule.due(replace(state, clock=step + 1)), step)
        return step

    def candidates(self, state: SamplerState) -> Cells:
        """The rule's, as far as they lie in the row's first unfinished block."""
        return self.rule.candidates(state) & self.block(state)

    def block(self, state: SamplerState) -> Cells:
        """The cells of each row's first block with masked cells."""
        count = state.start.sum(-1, keepdim=True).clamp(min=1)
        different = torch.log2(count.double()).ceil().to(torch.int64) + 1
        parts = 2 ** (state.draws.particle[:, None] % different)
        length = torch.div(count + parts - 1, parts, rounding_mode="floor")
        number = torch.div(state.start.cumsum(-1) - 1, length, rounding_mode="floor")
        now = torch.where(state.masked, number, state.x_t.shape[1]).amin(-1, keepdim=True)
        return number == now
