"""What the methods of one comparison have in common, and what a method is made into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.fitting.data import FittingData
from factordiff.fitting.fit_folder import FitFolder
from factordiff.sampling.request import common_vocabulary
from factordiff.sampling.reveal import RevealRule
from factordiff.team.team import Team, compose
from factordiff.worlds.folder import Folder
from factordiff.worlds.metric import Metric
from factordiff.worlds.queries import Queries
from factordiff.worlds.sides import sides


@dataclass(frozen=True)
class PreparedMethod:
    """Who answers some queries; of several teams each query takes its best, which cheats.

    `passes` is what had to be found out about each query before it could be answered.
    """

    teams: tuple[Team, ...]
    passes: Int[Tensor, " query"] | int = 0


BUDGET = 24  # settings that every fitted method may try on the validation queries
OnProgress = Callable[[str, int, int], None]  # what is being done, how much of it is, and of how much
# From the queries at hand to who answers them: most methods do not look at them.
Answering = Callable[[Queries], PreparedMethod]


def always(team: Team) -> Answering:
    """One team for all queries."""
    return lambda queries: PreparedMethod((team,))


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
    factors: Sequence[str] = ()  # offered to methods that take factors
    budget: int = BUDGET  # settings that are tried for every fitted method
    on_progress: OnProgress | None = None
    folder: Folder | None = None  # of records, and of what was fitted
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
            device=self.device,
            **options,
        )

    def header(self, label: str, fitted: bool = False) -> dict[str, Any]:
        """What the records of a row must say about themselves."""
        found = {**({} if self.folder is None else self.folder.about), "row": label}
        if fitted:
            found |= {
                "validation": 0 if self.validation is None else len(self.validation),
                "validation_data": None if self.validation is None else self.validation.sha256(),
                "budget": self.budget,
            }
        return found

    def to_fit_on(self, label: str) -> Queries:
        """The validation queries, which a fitted row cannot do without."""
        if self.validation is None or not len(self.validation):
            raise InvalidInput(
                f"methods: {label!r} is fitted on validation queries, and there are none; give "
                "compare(..., validation=...)"
            )
        return self.validation

    def fitting_data(self) -> FittingData:
        """The validation queries as `Team.fit` takes them: some to fit on, others, not alike, to choose by."""
        queries = self.to_fit_on("a function")
        fit, choose = sides(queries)
        kept = torch.cat([fit, choose]).sort().values
        some, mask = queries[kept].cut(), common_vocabulary(list(self.experts.values())).mask
        held = torch.isin(kept, choose)
        return FittingData(some.x_0, some.condition, some.hidden(mask), self.layout, held)

    def workplace(self, label: str) -> FitFolder | None:
        """Where a row's fit keeps what it has worked out, if anything is kept."""
        return None if self.folder is None else self.folder.workplace(label, self.header(label, fitted=True))

    def note(self, label: str, fit: dict[str, Any]) -> None:
        """Say what was fitted, and write it down where there is a folder."""
        self.notes[label] = fit
        if self.folder is not None:
            self.folder.note(label, self.header(label, fitted=True), fit)

    def recall(self, label: str) -> None:
        """What was fitted for a row before, if it was: it need not be fitted again."""
        found = None if self.folder is None else self.folder.noted(label, self.header(label, fitted=True))
        if found is not None:
            self.notes[label] = found

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far something is."""
        if self.on_progress is not None:
            self.on_progress(stage, done, total)

    def alone(self, number: int) -> Team:
        """One of the experts."""
        return self.team("mixture").alone(number) if len(self.experts) > 1 else self.team("single")
