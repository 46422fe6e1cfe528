"""What happened, step by step: plain lists that go to JSON and come back the same."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.errors import DataError
from factordiff.types import Cells, RoutingMap

VERSION = 1

Grid = list[list[list[int]]]  # item, particle, cell


@dataclass(frozen=True)
class Event:
    """What one step did, as tensors over the rows that took part."""

    rows: Int[Tensor, " batch"]  # which of the item x particle rows were asked about
    cells: Cells  # revealed
    routing: RoutingMap | None
    log_doubt: Float[Tensor, "batch cell"]
    ess: Float[Tensor, " item"] | None = None
    ancestors: Int[Tensor, "item particle"] | None = None


@dataclass(frozen=True)
class Step:
    """One step of every item: lists over item, particle (and cell)."""

    step: list[int]  # each item's clock
    x: Grid  # after the reveal, before resampling
    revealed: list[list[list[int]]]  # the cells revealed, by index
    routing: Grid | None  # the expert that spoke for each masked cell; -1 where none was asked
    margin: list[list[list[float | None]]]  # of the composed distribution; None where nothing was asked
    log_w: list[list[float | None]]  # before resampling; None is a dead particle
    ess: list[float] | None
    ancestors: list[list[int]] | None

    def __repr__(self) -> str:
        revealed = sum(len(cells) for item in self.revealed for cells in item)
        return f"Step({len(self.x)} items, {revealed} cells revealed)"


@dataclass
class Trace:
    """The whole run. `to_json` and `from_json` are inverse to each other."""

    values: int
    start: list[list[int]]  # item, cell
    steps: list[Step] = field(default_factory=list)

    def __repr__(self) -> str:
        cells = len(self.start[0]) if self.start else 0
        particles = len(self.steps[0].x[0]) if self.steps and self.steps[0].x else 1
        return (
            f"Trace({len(self.start)} items of {cells} cells, {particles} particles, {len(self.steps)} steps)"
        )

    def record(
        self,
        event: Event,
        step: Int[Tensor, " item"],
        asked: Bool[Tensor, "item particle"],
        after: Int[Tensor, "item particle cell"],
        log_w: Float[Tensor, "item particle"],
    ) -> None:
        """Append one step."""
        revealed = torch.zeros_like(after, dtype=torch.bool).flatten(0, 1)
        revealed[event.rows] = event.cells
        revealed = revealed.view_as(after)
        # An expert was asked about the cells that were masked before this step, in the rows that took part.
        spoken_for = ((after == self.values) | revealed) & asked.unsqueeze(-1)

        def spread(part: Tensor, fill: float | int) -> Tensor:
            everywhere = torch.full_like(after, fill, dtype=part.dtype).flatten(0, 1)
            everywhere[event.rows] = part
            return torch.where(spoken_for, everywhere.view_as(after), fill)

        margin = spread(-torch.expm1(event.log_doubt), math.nan)
        self.steps.append(
            Step(
                step.tolist(),
                after.tolist(),
                [[row.nonzero().flatten().tolist() for row in item] for item in revealed],
                None if event.routing is None else spread(event.routing, -1).tolist(),
                _finite(margin.tolist()),
                _finite(log_w.tolist()),
                None if event.ess is None else event.ess.tolist(),
                None if event.ancestors is None else event.ancestors.tolist(),
            )
        )

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
            steps = [Step(**step) for step in parts.pop("steps")]
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
