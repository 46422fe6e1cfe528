"""Trajectories relayed between experts: every few steps the surest of an item's particles is taken over by all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.sampling.reveal import RevealRule, Wrapped
from factordiff.schema.values import Whole
from factordiff.state import SamplerState


@dataclass(frozen=True)
class Relayed(Wrapped):
    r"""Another rule, and a relay every `every` steps: all particles of an item go on from the surest one's state.

    How sure a trajectory is, is its mean margin over the cells that were masked at the start: of a cell it has filled,
    the margin at which that was done, of a cell still masked, the margin of its own expert now (0 if nobody was asked
    about the trajectory in this step, as may be where cells are drawn). Ties go to the first.
    When all particles of an item are full there is a last relay, so that any of them is the answer.
    """

    rule: RevealRule
    every: int = 1

    def __post_init__(self) -> None:
        Whole(1).read(self.every, "every")
        if self.rule.repairs:
            raise InvalidInput(
                f"reveal: {self.rule!r} takes cells back, and so does a relay; use a rule without repairs"
            )

    @property
    def repairs(self) -> int:
        """The steps to the next relay, which rows count down; doubts of committed cells are kept."""
        return self.every

    def revised(
        self, state: SamplerState, log_doubt: Float[Tensor, "batch cell"]
    ) -> tuple[SamplerState, Int[Tensor, "item particle"]]:
        """The state after a relay, of the items whose turn it is."""
        assert state.log_doubt is not None
        assert state.repairs is not None
        count, left = state.particles, state.repairs.view(-1, state.particles) - 1
        full = ~state.masked.any(-1).view(-1, count).any(-1, keepdim=True)
        relayed = (left[:, :1] <= 0) | full
        doubt = torch.where(state.masked, log_doubt.nan_to_num(nan=0.0), state.log_doubt).exp()
        surest = torch.where(state.start, doubt, 0.0).sum(-1).view(-1, count).argmin(-1, keepdim=True)
        ancestors = torch.where(relayed, surest, torch.arange(count, device=surest.device))
        rows = (torch.arange(len(left), device=surest.device)[:, None] * count + ancestors).flatten()
        after = replace(
            state,
            x_t=state.x_t[rows],
            log_density=state.log_density[:, rows],
            log_doubt=state.log_doubt[rows],
            repairs=torch.where(relayed, self.every, left).flatten(),
        )
        return after, ancestors
