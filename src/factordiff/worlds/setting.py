"""What the methods of one comparison have in common, and what a method is made into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.engine.engine import Engine
from factordiff.experts.expert import Expert
from factordiff.sampling.reveal import RevealRule
from factordiff.solving.team import Team, compose
from factordiff.worlds.metric import Metric
from factordiff.worlds.queries import Queries


@dataclass(frozen=True)
class Prepared:
    """Who answers some queries; of several teams each query takes its best, which cheats.

    `passes` is what had to be found out about each query before it could be answered.
    """

    teams: tuple[Team, ...]
    passes: Int[Tensor, " query"] | int = 0


Watch = Callable[[str, int, int], None]  # what is being done, how much of it is, and of how much
# From the queries at hand to who answers them: most methods do not look at them.
Answering = Callable[[Queries], Prepared]


@dataclass(frozen=True, eq=False)
class Setting:
    """Named experts, validation queries, and how cells are filled: the same for every method."""

    experts: Mapping[str, Expert]
    metric: Metric
    validation: Queries | None = None
    objectives: Sequence[str] | None = None
    layout: tuple[int, int] | None = None
    reveal: str | RevealRule = "fast"
    device: torch.device | str = "cpu"
    batch: int = 64
    seed: int = 0
    rows: int = 1  # of an expert's own for every row of the loop
    watch: Watch | None = None
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)  # what was fitted, by the method's label

    @property
    def names(self) -> tuple[str, ...]:
        """What the experts are called."""
        return tuple(self.experts)

    def team(self, method: str | Composition, **options: Any) -> Team:
        """These experts under a method; `reveal` among its options is another rule than the setting's."""
        reveal = options.pop("reveal", self.reveal)
        return compose(
            dict(self.experts),
            method,
            layout=self.layout,
            reveal=reveal,
            objectives=self.objectives,
            engine=Engine(),
            device=self.device,
            **options,
        )

    def alone(self, number: int) -> Team:
        """One of the experts."""
        return self.team("mixture").alone(number) if len(self.experts) > 1 else self.team("single")
