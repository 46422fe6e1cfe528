"""Label-space factors: occupancy from one expert, color given foreground from another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.method import declare
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.types import CellLogProbs, ExpertLogProbs

BACKGROUND = 0


def split(
    log_probs: CellLogProbs,
) -> tuple[Float[Tensor, "batch cell"], Float[Tensor, "batch cell"], Float[Tensor, "batch cell color"]]:
    r"""$\log p_{bg}$, $\log p_{fg}$ and $\log p(c \mid fg)$ for $c \ge 1$ (uniform where $p_{fg} = 0$)."""
    colors = log_probs[..., BACKGROUND + 1 :]
    log_fg = colors.logsumexp(-1)
    given_fg = torch.log_softmax(
        torch.where(log_fg.unsqueeze(-1) > -torch.inf, colors, torch.zeros_like(colors)), dim=-1
    )
    return log_probs[..., BACKGROUND], log_fg, given_fg


class Views(Composition):
    r"""View factorisation: each expert answers only the question it was trained on.

    $r(0) = p_{occ}(0)$ and $r(c) = (1 - p_{occ}(0))\, p_{col}(c) / \sum_{c' \ge 1} p_{col}(c')$. How the
    occupancy expert splits its foreground and how much the color expert gives to background do not enter, and
    there is no temperature. At the experts' population optima r is the Bayes posterior: an ideal full model.

    Paper: "subset/view of variables", Eq. (8); the factorisation is ours.
    """

    by_cell = True

    def __init__(self, occupancy: int = 0, color: int = 1) -> None:
        self.occupancy = occupancy
        self.color = color

    def _parts(self, log_probs: ExpertLogProbs) -> tuple[Tensor, Tensor, Tensor]:
        for name, expert in (("occupancy", self.occupancy), ("color", self.color)):
            if not 0 <= expert < len(log_probs):
                raise InvalidInput(
                    f"{name}: expected the index of one of {len(log_probs)} experts, got {expert}"
                )
        if log_probs.shape[-1] < 2:
            raise InvalidInput("views: expected at least two values, background and one color")
        log_bg, log_fg, _ = split(log_probs[self.occupancy])
        _, _, given_fg = split(log_probs[self.color])
        return log_bg, log_fg, given_fg

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The product of the two views, exactly normalised."""
        log_bg, log_fg, given_fg = self._parts(log_probs)
        return Composed(torch.cat([log_bg.unsqueeze(-1), log_fg.unsqueeze(-1) + given_fg], dim=-1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(occupancy={self.occupancy}, color={self.color})"


@declare("views", objectives=True, most=2)
def views_of(objectives: Sequence[str]) -> Views:
    """Occupancy from the expert that was trained on it, color from the other one."""
    if len(objectives) != 2 or "occupancy" not in objectives:
        raise InvalidInput(
            f"method: 'views' takes two experts, one of them trained on occupancy, got {', '.join(objectives)}"
        )
    occupancy = objectives.index("occupancy")
    return Views(occupancy=occupancy, color=1 - occupancy)


class HardViews(Views):
    r"""Competence-masked maximum: background where $p_{occ}(0) > 1/2$, else the color expert's colors.

    Each margin is taken in the expert's own label space, $|p_{bg} - p_{fg}|$ and the top two colors; a cell
    waits for the more doubtful of the two.
    """

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """A point mass on background or the renormalised colors; the routing map says which expert decided."""
        log_bg, log_fg, given_fg = self._parts(log_probs)
        background = log_bg > log_fg
        no_color = torch.cat(
            [torch.zeros_like(log_bg).unsqueeze(-1), torch.full_like(given_fg, -torch.inf)], -1
        )
        color = torch.cat([torch.full_like(log_bg, -torch.inf).unsqueeze(-1), given_fg], -1)
        occupancy_doubt = log_doubt(torch.stack([log_bg, log_fg], dim=-1))
        doubt = torch.where(background, occupancy_doubt, torch.maximum(occupancy_doubt, log_doubt(given_fg)))
        z = torch.where(background, self.occupancy, self.color)
        return Composed(torch.where(background.unsqueeze(-1), no_color, color), routing=z, log_doubt=doubt)
