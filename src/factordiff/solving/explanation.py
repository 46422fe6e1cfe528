"""Why an answer is what it is: who decided each cell, with which margin, and what the others said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from factordiff.arc.grid import SIDE, Shape
from factordiff.composition.confidence import margin
from factordiff.errors import InvalidInput
from factordiff.experts.expert import take
from factordiff.sampling.sampler import Samples
from factordiff.solving.story import chapters
from factordiff.solving.team import Team


@dataclass(frozen=True)
class Opinion:
    """What one expert said about a cell just before it was revealed."""

    expert: str
    color: int  # its likeliest
    chance: float  # of that color
    margin: float  # to its second
    chance_of_answer: float  # of the color that was revealed


@dataclass(frozen=True)
class Decision:
    """How one cell came about."""

    row: int
    column: int
    step: int
    color: int
    decided_by: str | None  # None where a method lets all experts speak at once
    opinions: tuple[Opinion, ...]

    @property
    def disputed(self) -> bool:
        """Whether some expert would have chosen another color."""
        return any(opinion.color != self.color for opinion in self.opinions)

    def __repr__(self) -> str:
        said = ", ".join(
            f"{one.expert} said {one.color} ({one.chance:.2f}, margin {one.margin:.3f})"
            for one in self.opinions
        )
        return f"Decision(({self.row}, {self.column}) = {self.color} by {self.decided_by or 'all'}: {said})"


@dataclass(frozen=True)
class Explanation:
    """All decisions of an answer, in the order in which they were taken."""

    experts: tuple[str, ...]
    decisions: tuple[Decision, ...]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def at(self, row: int, column: int) -> Decision:
        """The decision about one cell."""
        for decision in self.decisions:
            if (decision.row, decision.column) == (row, column):
                return decision
        raise InvalidInput(
            f"cell: ({row}, {column}) was not decided; it was given, or lies outside the answer"
        )

    def disputed(self) -> list[Decision]:
        """The cells about which the experts did not agree."""
        return [decision for decision in self.decisions if decision.disputed]

    def spelled(self) -> list[dict[str, Any]]:
        """The decisions as plain JSON values."""
        return [asdict(decision) for decision in self.decisions]

    def __repr__(self) -> str:
        return f"Explanation({len(self)} cells, {len(self.disputed())} of them disputed)"


@torch.no_grad()
def explain(team: Team, samples: Samples, condition: Any, shape: Shape) -> Explanation:
    """Ask every expert again about the states the answer went through, in one batch.

    The trace holds who was routed to; the distributions are not kept while decoding and are computed anew here.
    """
    told = chapters(samples)
    if not told:
        reason = "it is pooled from several runs" if samples.trace is None else "nothing was left to decide"
        raise InvalidInput(f"explain: this answer has no steps to explain ({reason})")
    states = torch.tensor([chapter.before for chapter in told], device=team.device)
    rows = torch.zeros(len(states), dtype=torch.int64, device=team.device)
    said = torch.stack(
        [
            expert.log_probs(states.clone(), take(expert.encode(condition), rows)).double().cpu()
            for expert in team.experts
        ]
    )
    margins, chances = margin(said), said.exp()

    decisions = []
    for step, chapter in enumerate(told):
        for cell in chapter.revealed:
            row, column = divmod(cell, SIDE)
            if row < shape[0] and column < shape[1]:
                color = chapter.after[cell]
                speaker = None if chapter.routing is None else team.names[chapter.routing[cell]]
                opinions = _opinions(team.names, chances[:, step, cell], margins[:, step, cell], color)
                decisions.append(Decision(row, column, step, color, speaker, opinions))
    return Explanation(team.names, tuple(decisions))


def _opinions(
    names: Sequence[str], chances: torch.Tensor, margins: torch.Tensor, color: int
) -> tuple[Opinion, ...]:
    return tuple(
        Opinion(name, int(chance.argmax()), float(chance.max()), float(surety), float(chance[color]))
        for name, chance, surety in zip(names, chances, margins, strict=True)
    )
