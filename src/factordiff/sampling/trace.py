"""What happened, step by step: plain lists that go to JSON and come back the same."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from factordiff.errors import DataError
from factordiff.sampling.step import StepInfo

VERSION = 1

Grid = list[list[list[int]]]  # item, particle, cell


@dataclass(frozen=True)
class TraceStep:
    """One step of every item: lists over item, particle (and cell)."""

    step: list[int]  # each item's clock
    x: Grid  # after the reveal, before resampling
    revealed: list[list[list[int]]]  # the cells revealed, by index
    routing: Grid | None  # the expert that spoke for each masked cell; -1 where none was asked
    margin: list[list[list[float | None]]]  # of the composed distribution; None where nothing was asked
    log_w: list[list[float | None]]  # before resampling; None is a dead particle
    ess: list[float] | None
    ancestors: list[list[int]] | None
    # item, particle, expert, cell: how much each expert counts at the cells asked about, if that was worked out
    weights: list[list[list[list[float | None]]]] | None = None

    def __repr__(self) -> str:
        revealed = sum(len(cells) for item in self.revealed for cells in item)
        return f"TraceStep({len(self.x)} items, {revealed} cells revealed)"


@dataclass
class Trace:
    """The whole run. `to_json` and `from_json` are inverse to each other."""

    values: int
    start: list[list[int]]  # item, cell
    steps: list[TraceStep] = field(default_factory=list)

    def __repr__(self) -> str:
        cells = len(self.start[0]) if self.start else 0
        particles = len(self.steps[0].x[0]) if self.steps and self.steps[0].x else 1
        return (
            f"Trace({len(self.start)} items of {cells} cells, {particles} particles, {len(self.steps)} steps)"
        )

    def record(self, info: StepInfo) -> None:
        """Append one step."""
        asked, revealed = info.proposal, info.revealed
        items, count = len(revealed) // revealed.particles, revealed.particles
        # An expert was asked about the cells that were masked before this step, in the rows that had candidates.
        spoken_for = asked.state.masked & asked.candidates.any(-1, keepdim=True)

        def listed(part: Tensor) -> Any:
            return part.view(items, count, *part.shape[1:]).tolist()

        margin = torch.where(spoken_for, -torch.expm1(asked.log_doubt), math.nan)
        routing = asked.composed.routing
        weights = asked.composed.weights
        if weights is not None:
            weights = torch.where(spoken_for, weights.double(), math.nan).transpose(0, 1)
            weights = (weights * 1e6).round() / 1e6  # six digits: a trace is a file
        cells = [row.nonzero().flatten().tolist() for row in asked.cells]
        self.steps.append(
            TraceStep(
                asked.state.clock[::count].tolist(),
                listed(revealed.x_t),
                [cells[first : first + count] for first in range(0, len(cells), count)],
                None if routing is None else listed(torch.where(spoken_for, routing, -1)),
                _finite(listed(margin)),
                _finite(listed(revealed.log_w)),
                None if info.ess is None else info.ess.tolist(),
                None if info.ancestors is None else info.ancestors.tolist(),
                None if weights is None else _finite(listed(weights)),
            )
        )

    def deciders(self, particle: int = 0) -> list[list[int | None]]:
        """Of each item, the expert that spoke for each cell when it was revealed (last, if it was repaired).

        None for given cells, and where a method has no routing map.
        """
        found: list[list[int | None]] = [[None] * len(row) for row in self.start]
        for step in self.steps:
            for item, spoken in enumerate(step.routing or []):
                for cell in step.revealed[item][particle]:
                    found[item][cell] = spoken[particle][cell]
        return found

    def to_json(self) -> str:
        """The trace as JSON text."""
        return json.dumps({"version": VERSION, **asdict(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The trace that `to_json` wrote."""
        try:
            parts = json.loads(text)
            if parts.pop("version") != VERSION:
                raise DataError(f"trace: expected version {VERSION}; write it again with this release")
            steps = [TraceStep(**step) for step in parts.pop("steps")]
            return cls(steps=steps, **parts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"trace: expected the JSON that Trace.to_json writes, got {error!r}") from error


def _finite(nested: Any) -> Any:
    """The same lists with None in place of NaN and infinities, which JSON does not have."""
    if isinstance(nested, list):
        return [_finite(part) for part in nested]
    return nested if math.isfinite(nested) else None
