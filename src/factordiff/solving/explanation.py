"""Why an answer is what it is: who decided each cell, what decided it, and what the others said.

Margins of confident experts are all but 1, and alike to the eye. What routing compares is the log-doubt, the logarithm
of what is missing to 1, after each expert's temperature and over the factor of the cell: that is what is told here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.arc.grid import SIDE, Shape
from factordiff.composition.composition import Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.routing import Routing, SoftRouting, factor_log_doubts, tempered_log_doubts
from factordiff.errors import InvalidInput
from factordiff.experts.expert import take
from factordiff.networks.named import NamedExpert
from factordiff.sampling.path import PathStep, path_steps
from factordiff.sampling.sampler import Samples
from factordiff.state import SamplerState
from factordiff.team.team import Team
from factordiff.types import ExpertCells, ExpertLogProbs

SURE = 1e-3  # below it a doubt is written out: 1 - 1.6e-06


@dataclass(frozen=True)
class Opinion:
    """What one expert said about a cell just before it was revealed."""

    expert: str
    color: int  # its likeliest
    chance: float  # of that color
    doubt: float  # 1 minus its margin to the second
    decisive_log_doubt: float  # after its temperature, over the cell's factor: routing takes the least
    temperature: float
    chance_of_answer: float  # of the color that was revealed
    differs: bool  # whether it knows about this cell and has another first choice

    @property
    def margin(self) -> float:
        """How far its first choice is before its second."""
        return 1.0 - self.doubt

    @property
    def margin_text(self) -> str:
        """The margin as it can be told from another: by what is missing to 1."""
        return f"1 - {self.doubt:.1e}" if self.doubt < SURE else f"{self.margin:.3f}"


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
        """Whether some expert that knows about this cell would have chosen another color."""
        return any(opinion.differs for opinion in self.opinions)

    def __repr__(self) -> str:
        said = ", ".join(
            f"{one.expert} said {one.color} ({one.chance:.2f}, margin {one.margin_text})"
            for one in self.opinions
        )
        return f"Decision(({self.row}, {self.column}) = {self.color} by {self.decided_by or 'all'}: {said})"


@dataclass(frozen=True)
class Explanation:
    """All decisions of an answer, in the order in which they were taken."""

    experts: tuple[str, ...]
    decisions: tuple[Decision, ...]
    temperatures: tuple[float, ...]

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
        """The cells about which experts that know them did not agree."""
        return [decision for decision in self.decisions if decision.disputed]

    def spelled(self) -> list[dict[str, Any]]:
        """The decisions as plain JSON values; a log-doubt of minus infinity is null."""
        spelled = [asdict(decision) for decision in self.decisions]
        for opinion in (opinion for decision in spelled for opinion in decision["opinions"]):
            if not math.isfinite(opinion["decisive_log_doubt"]):
                opinion["decisive_log_doubt"] = None
        return spelled

    def __repr__(self) -> str:
        return f"Explanation({len(self)} cells, {len(self.disputed())} of them disputed)"


@torch.no_grad()
def explain(team: Team, samples: Samples, condition: Any, shape: Shape) -> Explanation:
    """Ask every expert again about the states the answer went through, in one batch.

    The trace holds who was routed to; the distributions are not kept while decoding and are computed anew here.
    """
    told = path_steps(samples)
    if not told:
        reason = "it is pooled from several runs" if samples.trace is None else "nothing was left to decide"
        raise InvalidInput(f"explain: this answer has no steps to explain ({reason})")
    states = torch.tensor([path_step.before for path_step in told], device=team.device)
    rows = torch.zeros(len(states), dtype=torch.int64, device=team.device)
    said = torch.stack(
        [
            expert.log_probs(states.clone(), take(expert.encode(condition), rows)).double().cpu()
            for expert in team.experts
        ]
    )
    composition = replace(team, layout=(SIDE, SIDE)).method_for(states.shape[1], condition[rows]).composition
    temperatures = getattr(composition, "temperatures", None) or (1.0,) * len(team)
    own = log_doubt(said)
    compared = compared_log_doubts(
        composition, said, SamplerState.begin(states.cpu(), said.shape[-1], len(team))
    )
    decisive = own if compared is None else compared
    doubts = own.clamp(max=0.0).exp()

    def opinion(place: int, step: int, cell: int, color: int) -> Opinion:
        chances = said[place, step, cell].exp()
        doubt = float(doubts[place, step, cell])
        return Opinion(
            team.names[place],
            int(chances.argmax()),
            float(chances.max()),
            doubt,
            float(decisive[place, step, cell]),
            temperatures[place],
            float(chances[color]),
            doubt < 1.0 and differs(team.members[place], chances, color),
        )

    def decision(step: int, path_step: PathStep, cell: int) -> Decision:
        color = path_step.after[cell]
        speaker = None if path_step.routing is None else team.names[path_step.routing[cell]]
        opinions = tuple(opinion(place, step, cell, color) for place in range(len(team)))
        return Decision(*divmod(cell, SIDE), step, color, speaker, opinions)

    decisions = tuple(
        decision(step, path_step, cell)
        for step, path_step in enumerate(told)
        for cell in path_step.revealed
        if cell // SIDE < shape[0] and cell % SIDE < shape[1]
    )
    return Explanation(team.names, decisions, tuple(temperatures))


def differs(member: NamedExpert, chances: Float[Tensor, " value"], color: int) -> bool:
    """Whether an expert contradicts a cell's color in what it was trained to know.

    An occupancy expert knows background from foreground and no color; a color expert knows nothing of background.
    """
    if member.objective == "occupancy":
        return bool(chances[1:].sum() > chances[0]) != (color > 0)
    if member.objective == "color":
        return color > 0 and 1 + int(chances[1:].argmax()) != color
    return int(chances.argmax()) != color


def compared_log_doubts(
    composition: Composition, said: ExpertLogProbs, state: SamplerState
) -> ExpertCells | None:
    """What routing compares: every expert's log-doubt, tempered and over the cell's factor; None of other methods."""
    if not isinstance(composition, Routing | SoftRouting):
        return None
    doubts = tempered_log_doubts(said, composition.temperatures)
    aggregate = composition.aggregate if isinstance(composition, Routing) else "mean"
    return factor_log_doubts(doubts, composition.partition, state, aggregate)
