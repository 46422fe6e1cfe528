"""What an expert is told about the item it denoises: a query, a few context frames, and where each grid ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.expert import LeftOut, mapped

OUTSIDE = -1  # no value at all: what an expert that sees sizes reads in a cell outside a grid


class Inside(NamedTuple):
    """Which cells of the canvas belong to a grid, for every grid of a condition; the others are padding."""

    query: Bool[Tensor, "item cell"]
    context_inputs: Bool[Tensor, "item frame cell"]
    context_outputs: Bool[Tensor, "item frame cell"]

    def __repr__(self) -> str:
        items, cells = self.query.shape
        return (
            f"Inside({items} items of {cells} cells, {self.context_inputs.shape[1]} demonstrations at most)"
        )


@dataclass(frozen=True)
class Condition:
    """A query grid per item and its demonstration pairs, all on the same canvas of cells.

    Items may have different numbers of frames: `present` says which of the padded slots hold one. Canvases are padded
    with value 0; `inside` says, cell by cell, where the grids are, so that a row of zeros and no row differ. Without
    it (None) nobody knows, and an expert that sees sizes refuses the condition.
    """

    query: Int[Tensor, "item cell"]
    context_inputs: Int[Tensor, "item frame cell"]
    context_outputs: Int[Tensor, "item frame cell"]
    present: Bool[Tensor, "item frame"]
    inside: Inside | None = None

    def __post_init__(self) -> None:
        items, cells = self.query.shape
        frames = self.present.shape[-1]
        for name in ("context_inputs", "context_outputs"):
            _expect_shape(name, getattr(self, name), (items, frames, cells))
        if self.inside is not None:
            if not isinstance(self.inside, Inside):
                raise InvalidInput(
                    "inside: expected Inside(query, context_inputs, context_outputs), which says of each cell whether "
                    f"it lies in its grid, got {type(self.inside).__name__}"
                )
            for name, mask in self.inside._asdict().items():
                if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
                    found = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
                    raise InvalidInput(f"inside.{name}: expected a tensor of true and false, got {found}")
                _expect_shape(f"inside.{name}", mask, tuple(getattr(self, name).shape))

    def __repr__(self) -> str:
        items, cells = self.query.shape
        shown = sorted(set(self.present.sum(-1).tolist())) or [0]
        frames = str(shown[0]) if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
        sizes = "" if self.inside is not None else "sizes unknown, "
        return f"Condition({items} items of {cells} cells, {frames} demonstrations each, {sizes}{self.query.device})"

    def __len__(self) -> int:
        return self.query.shape[0]

    def __getitem__(self, items: slice | Tensor) -> Condition:
        return self._each(lambda part: part[items])

    def to(self, device: torch.device | str) -> Condition:
        """The same condition on another device."""
        return self._each(lambda part: part.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Condition:
        return self.with_grids(change, change(self.present))

    def with_grids(
        self, change: Callable[[Tensor], Tensor], present: Bool[Tensor, "item frame"]
    ) -> Condition:
        """Every grid changed, and where it is; `present` are the demonstrations that are there then."""
        query, inputs, outputs = map(change, (self.query, self.context_inputs, self.context_outputs))
        inside = None if self.inside is None else Inside(*map(change, self.inside))
        return Condition(query, inputs, outputs, present, inside)

    def grids(self, sees_sizes: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Query, context inputs and outputs as an expert reads them; one that sees sizes finds OUTSIDE in padding."""
        padded = self.query, self.context_inputs, self.context_outputs
        if not sees_sizes:
            return padded
        if self.inside is None:
            raise InvalidInput(
                "condition: this expert sees where a grid ends, and the condition does not say it; "
                "give Condition(..., inside=Inside(query, context_inputs, context_outputs))"
            )
        query, inputs, outputs = (
            grid.masked_fill(~mask, OUTSIDE) for grid, mask in zip(padded, self.inside, strict=True)
        )
        return query, inputs, outputs

    def leave_one_out(self) -> list[LeftOut]:
        """Each demonstration in turn as the query, with the others as its demonstrations."""
        found = []
        for frame in range(self.present.shape[1]):
            others = self.present.clone()
            others[:, frame] = False
            shown = others[:, :, None]
            inside = self.inside
            if inside is not None:
                outputs = inside.context_outputs & shown
                inside = Inside(
                    inside.context_inputs[:, frame].clone(), inside.context_inputs & shown, outputs
                )
            told = Condition(
                self.context_inputs[:, frame],
                self.context_inputs * shown,
                self.context_outputs * shown,
                others,
                inside,
            )
            there = self.present[:, frame] & others.any(-1)
            found.append(LeftOut(told, self.context_outputs[:, frame], there))
        return found

    def check(self) -> None:
        """Refuse sizes that contradict the canvas; it reads the tensors, so that on a GPU it waits for them."""
        if self.inside is None:
            return
        for name, mask in self.inside._asdict().items():
            beyond = ((getattr(self, name) != 0) & ~mask).nonzero()
            if len(beyond):
                item, *_, cell = beyond[0].tolist()
                raise InvalidInput(
                    f"condition: {name} of item {item} has a value in cell {cell}, which `inside` says is outside the "
                    "grid; padding is 0"
                )


def joined(conditions: Sequence[Condition]) -> Condition:
    """The items of several conditions, one after the other; all have the same number of frames."""
    parts = [one.inside for one in conditions if one.inside is not None]
    inside = Inside(*map(torch.cat, zip(*parts, strict=True))) if len(parts) == len(conditions) else None
    names = ("query", "context_inputs", "context_outputs", "present")
    query, inputs, outputs, present = (
        torch.cat([getattr(one, name) for one in conditions]) for name in names
    )
    return Condition(query, inputs, outputs, present, inside)


def on_device(condition: Any, device: torch.device) -> Any:
    """Any condition where the experts are; what cannot be moved stays."""
    return mapped(condition, lambda part: part.to(device) if isinstance(part, Tensor | Condition) else part)


def _expect_shape(name: str, found: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(found.shape) != expected:
        dimensions = "(item, frame, cell)" if len(expected) == 3 else "(item, cell)"
        raise InvalidInput(f"{name}: expected shape {expected} {dimensions}, got {tuple(found.shape)}")
