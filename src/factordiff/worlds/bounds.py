"""What no method can do, to hold methods against: being told the owner, or the truth."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.emission import log_prob_at
from factordiff.composition.mixture import mixture
from factordiff.composition.routing import routed
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.types import ExpertLogProbs, RoutingMap
from factordiff.worlds.queries import NOBODY


class TrueOwner(Composition):
    """Each cell by its true owner; where nobody owns it, the mixture of all."""

    def __init__(self, owners: Int[Tensor, "item cell"]) -> None:
        self.owners = owners

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """What the owner says."""
        owner = _of_rows("owners", self.owners, state)
        if owner.numel() and int(owner.max()) >= len(log_probs):
            raise InvalidInput(f"owners: expected experts below {len(log_probs)}, got {int(owner.max())}")
        uniform = log_probs.new_full((len(log_probs),), 1.0 / len(log_probs)).log()
        anybody = mixture(log_probs, uniform)
        z = owner.clamp(min=0)
        owned = (owner != NOBODY).unsqueeze(-1)
        return Composed(torch.where(owned, routed(log_probs, z), anybody), routing=z)

    def __repr__(self) -> str:
        return f"TrueOwner({len(self.owners)} items)"


class Oracle(Composition):
    """Each cell by the expert that is best there, which only the truth can tell.

    `choice`: one whose first choice is right, if there is any, else the one that gives the truth the most.
    `probability`: the one that gives the truth the most.
    """

    def __init__(
        self, x_0: Int[Tensor, "item cell"], by: Literal["choice", "probability"] = "choice"
    ) -> None:
        if by not in ("choice", "probability"):
            raise InvalidInput(f"by: expected choice or probability, got {by!r}")
        self.x_0, self.by = x_0, by

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """What the best expert says."""
        z = self.best(log_probs, _of_rows("x_0", self.x_0, state))
        return Composed(routed(log_probs, z), routing=z)

    def best(self, log_probs: ExpertLogProbs, truth: Int[Tensor, "batch cell"]) -> RoutingMap:
        """Which expert that is; ties go to the first."""
        said = log_prob_at(log_probs, truth)
        if self.by == "choice":
            said = said + 1e9 * (log_probs.argmax(-1) == truth)
        return said.nan_to_num(neginf=-1e12).argmax(0)

    def __repr__(self) -> str:
        return f"Oracle({len(self.x_0)} items, by {self.by})"


def _of_rows(name: str, of_items: Int[Tensor, "item cell"], state: SamplerState) -> Int[Tensor, "batch cell"]:
    if of_items.shape[1] != state.x_t.shape[1] or (len(state) and int(state.item.max()) >= len(of_items)):
        raise InvalidInput(
            f"{name}: expected one row of {state.x_t.shape[1]} cells for every item, got {tuple(of_items.shape)}"
        )
    return of_items.to(state.x_t.device)[state.item]
