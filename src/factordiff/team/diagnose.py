"""A team's experts asked once about right answers, and what could be made of them: numbers, evidence, a router."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from factordiff.errors import InvalidInput
from factordiff.fitting.data import FittingData
from factordiff.fitting.diagnosis import Diagnosis, diagnose
from factordiff.fitting.predictions import predict
from factordiff.team.fit import Progress, data_of

if TYPE_CHECKING:
    from factordiff.team.team import Team


def diagnose_team(team: Team, data: Any, seed: int = 0, on_progress: Progress | None = None) -> Diagnosis:
    """Ask the experts once, and compare what can be made of it."""
    if len(team) < 2:
        raise InvalidInput(f"diagnose: expected at least two experts to compare, got {len(team)}")
    tell, given = on_progress or (lambda stage, done, total: None), data_of(team, data)
    if len(given) < 2:
        raise InvalidInput(
            "diagnose: expected at least two items, to fit a router on one and measure it on the other, got "
            f"{len(given)}"
        )
    _check_owner(given, len(team))
    predictions = predict(
        team.experts, given, seed=seed, on_pass=lambda done, total: tell("asking the experts", done, total)
    )
    return diagnose(
        predictions,
        team.names,
        layout=given.layout,
        owner=given.owner,
        seed=seed,
        on_part=lambda done, total: tell("comparing", done, total),
    )


def _check_owner(data: FittingData, experts: int) -> None:
    """Refuse owners that are none of the experts, where a cell is asked."""
    if data.owner is not None:
        numbers = data.owner[data.open_cells]
        if not 0 <= int(numbers.min()) <= int(numbers.max()) < experts:
            raise InvalidInput(
                f"owner: expected the number of an expert, 0 .. {experts - 1}, for each asked cell, got "
                f"{int(numbers.min())} .. {int(numbers.max())}; leave cells without an owner out by `asked`"
            )
