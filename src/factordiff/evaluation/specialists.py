"""What the specialists know, asked in their own label space.

Both questions are put as experts to the one sampling loop: the wrapped expert's distribution is folded or
restricted, and the loop decodes it in the usual order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from factordiff.composition.views import split
from factordiff.experts.expert import Expert
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

BACKGROUND = 0


class ConditionWithTruth(NamedTuple):
    """A condition together with the right answer, for questions that reveal it as they go."""

    condition: Any
    x_0: Tensor


class OccupancyQuestion:
    r"""Background or foreground? Value 0 is background, 1 foreground, decided in order of $|p_{fg} - p_{bg}|$.

    After each decision the expert is shown the cell's true value, so that it is never fed arbitrary colors.
    """

    def __init__(self, expert: Expert) -> None:
        self.expert = expert
        self.vocabulary = Vocabulary(2)

    def encode(self, condition: ConditionWithTruth) -> tuple[Any, Tensor]:
        """The expert's own encoding, and the truth."""
        return self.expert.encode(condition.condition), condition.x_0

    def log_probs(self, x_t: Tokens, encoded: tuple[Any, Tensor]) -> CellLogProbs:
        """The binary belief at every cell."""
        inner, x_0 = encoded
        shown = torch.where(x_t == self.vocabulary.mask, self.expert.vocabulary.mask, x_0)
        log_bg, log_fg, _ = split(self.expert.log_probs(shown, inner))
        return torch.stack([log_bg, log_fg], dim=-1)


class ColorQuestion:
    """Which color, given foreground? The expert's distribution, restricted to the colors 1 and up."""

    def __init__(self, expert: Expert) -> None:
        self.expert = expert
        self.vocabulary = expert.vocabulary

    def encode(self, condition: Any) -> Any:
        """The expert's own encoding."""
        return self.expert.encode(condition)

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The colors' distribution at every cell; background has none."""
        _, _, given_fg = split(self.expert.log_probs(x_t, encoded))
        return torch.cat([torch.full_like(given_fg[..., :1], -torch.inf), given_fg], dim=-1)


def occupancy_of(x_0: Tokens) -> Tokens:
    """The occupancy map of right answers: 0 background, 1 foreground."""
    return (x_0 > BACKGROUND).to(torch.int64)


def background_given(x_0: Tokens, mask: int) -> Tokens:
    """The start of the color question: true background revealed, the rest masked."""
    return torch.where(x_0 > BACKGROUND, mask, x_0)
