"""A picture painted by two experts that each know a part of it: routing to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import Samples, sample
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

# An apple on a table. 0 night, 1 frame, 2 apple, 3 leaf, 4 table.
PICTURE = """
1 1 1 1 1 1 1 1
1 0 0 0 3 0 0 1
1 0 0 0 3 3 0 1
1 0 2 2 2 2 0 1
1 0 2 2 2 2 0 1
1 0 2 2 2 2 0 1
1 4 4 4 4 4 4 1
1 1 1 1 1 1 1 1
"""
HEIGHT = WIDTH = 8
VALUES = 5
STEPS = 16


class IndependentCells:
    """An expert of one's own: a fixed distribution per cell, whatever else is revealed.

    Three things make an expert: a vocabulary, `encode` and `log_probs`.
    """

    def __init__(self, log_table: Float[Tensor, "cell value"]) -> None:
        self.log_table = torch.log_softmax(log_table, dim=-1)
        self.vocabulary = Vocabulary(log_table.shape[-1])

    def encode(self, condition: Any) -> Any:
        """No condition to encode."""
        return None

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The table, once per row."""
        return self.log_table.expand(len(x_t), -1, -1)


def picture() -> Int[Tensor, " cell"]:
    """The picture, cell by cell in reading order."""
    return torch.tensor([int(value) for value in PICTURE.split()])


def painters() -> tuple[IndependentCells, IndependentCells]:
    """One who knows the frame and what lies near it, and one who knows the middle.

    Each is surest where it is at home. Elsewhere it fills in its habit (frame, or apple), and is fairly sure
    of that: 70 %.
    """
    row = torch.arange(HEIGHT).double()
    to_border = torch.minimum(row, HEIGHT - 1 - row)
    depth = torch.minimum(to_border[:, None], to_border[None, :]).flatten()  # 0 at the frame, 3 in the middle
    edges = _sure(0.995 - 0.01 * depth, at_home=depth < 2, habit=1)
    middle = _sure(0.965 + 0.01 * depth, at_home=depth >= 2, habit=2)
    return IndependentCells(edges), IndependentCells(middle)


def _sure(
    chance: Float[Tensor, " cell"], at_home: Tensor, habit: int, elsewhere: float = 0.7
) -> Float[Tensor, "cell value"]:
    """Log-probabilities: the picture's value with the given chance at home, the habit elsewhere."""
    said = torch.where(at_home, picture(), habit)
    chance = torch.where(at_home, chance, elsewhere)
    others = ((1.0 - chance) / (VALUES - 1))[:, None].expand(-1, VALUES)
    return others.scatter(1, said[:, None], chance[:, None]).log()


@dataclass(frozen=True)
class Painted:
    """What a method painted: the first of many draws, and how many cells are right on average."""

    method: str
    x_0: Int[Tensor, " cell"]
    right: float
    samples: Samples


def methods() -> dict[str, Composition]:
    """The painters alone, and together."""
    return {
        "edges alone": Single(0),
        "middle alone": Single(1),
        "mixture": Mixture(),
        "geometric-mean": GeometricMean(),
        "product": Product(),
        "routing": Routing(),
    }


def paint(method: str, seed: int = 0, draws: int = 200, trace: bool = False) -> Painted:
    """Paint the picture `draws` times, values drawn at temperature 1, a few of the surest cells at a time."""
    truth = picture()
    blank = torch.full((draws, len(truth)), VALUES)
    samples = sample(
        painters(),
        methods()[method],
        blank,
        reveal=ByConfidence(STEPS),
        temperature=1.0,
        seed=seed,
        trace=trace,
    )
    right = (samples.x_0 == truth).double().sum(-1).mean()
    return Painted(method, samples.x_0[0], float(right), samples)
