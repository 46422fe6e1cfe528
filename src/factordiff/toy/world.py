"""Three tiny worlds of four cells and three values: two opinions, two halves, two views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.experts.expert import Expert
from factordiff.experts.tabular import TabularExpert
from factordiff.types import CellLogProbs, Tokens

CELLS = 4
VALUES = 3

Joint = Float[Tensor, "3 3 3 3"]


@dataclass(frozen=True)
class ToyWorld:
    """Experts and the joint that a perfect composition of them would draw from."""

    name: str
    experts: tuple[Expert, ...]
    truth: Joint


def random_joint(seed: int, cells: int = CELLS) -> Float[Tensor, ...]:
    """A peaked random joint: 98 % Dirichlet(0.25), 2 % uniform, one axis per cell.

    Seeds 1 and 2 give the two joints that the documented distances refer to; numpy's generator is used because
    the recipe names it.
    """
    states = VALUES**cells
    table = 0.98 * np.random.default_rng(seed).dirichlet(np.full(states, 0.25)) + 0.02 / states
    return torch.from_numpy(table).view([VALUES] * cells)


def normalised(table: Joint) -> Joint:
    """The table divided by its sum."""
    return table / table.sum()


def two_opinions() -> tuple[TabularExpert, TabularExpert]:
    """Two exact experts that know the whole world and disagree about most of it (total variation 0.826)."""
    return TabularExpert(random_joint(1)), TabularExpert(random_joint(2))


def two_halves(wrongly_sure: bool = False) -> ToyWorld:
    """Each expert knows two of the four cells; of the others it knows nothing, or something that is not so."""
    first, second = random_joint(3, cells=2), random_joint(4, cells=2)
    elsewhere = [torch.full_like(first, 1 / VALUES**2)] * 2
    if wrongly_sure:
        elsewhere = [random_joint(5, cells=2), random_joint(6, cells=2)]
    experts = (TabularExpert(beside(first, elsewhere[0])), TabularExpert(beside(elsewhere[1], second)))
    name = "two halves, wrongly sure" if wrongly_sure else "two halves"
    return ToyWorld(name, experts, beside(first, second))


def beside(left: Tensor, right: Tensor) -> Joint:
    """Two halves that know nothing of each other."""
    return left[:, :, None, None] * right[None, None, :, :]


def two_views() -> ToyWorld:
    """One expert says whether a cell is empty (value 0), the other what it holds if it is not."""
    truth = TabularExpert(random_joint(1))
    return ToyWorld("two views", (Presence(truth), Kind(truth)), random_joint(1))


class Presence:
    """The ideal occupancy expert: right about empty or not, and arbitrary about what a cell holds."""

    def __init__(self, truth: TabularExpert) -> None:
        self.truth, self.vocabulary = truth, truth.vocabulary
        habit = torch.tensor([0.9, 0.1], dtype=torch.float64)  # always leans to value 1, for no reason
        self.log_habit = habit.log()

    def encode(self, condition: Any) -> Any:
        """Nothing to encode."""
        return None

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The true chance of empty; the rest split by habit."""
        log_p = self.truth.log_probs(x_t)
        log_present = log_p[..., 1:].logsumexp(-1, keepdim=True)
        return torch.cat([log_p[..., :1], log_present + self.log_habit], dim=-1)


class Kind:
    """The ideal expert about contents: right given that a cell is not empty, and never says that it is."""

    def __init__(self, truth: TabularExpert) -> None:
        self.truth, self.vocabulary = truth, truth.vocabulary

    def encode(self, condition: Any) -> Any:
        """Nothing to encode."""
        return None

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The true distribution given not empty."""
        never = torch.full((*x_t.shape, 1), -torch.inf, dtype=torch.float64)
        contents = self.truth.log_probs(x_t)[..., 1:]
        # A revealed empty cell has no contents; nothing asks about it, so any distribution will do.
        contents = torch.where(contents.isinf().all(-1, keepdim=True), 0.0, contents)
        return torch.cat([never, torch.log_softmax(contents, dim=-1)], dim=-1)
