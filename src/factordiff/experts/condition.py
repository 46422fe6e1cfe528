"""What an expert is told about the item it denoises: a query and a few context frames."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.errors import InvalidInput


@dataclass(frozen=True)
class Condition:
    """A query grid per item and its demonstration pairs, all on the same canvas of cells.

    Items may have different numbers of frames: `present` says which of the padded slots hold one.
    """

    query: Int[Tensor, "item cell"]
    context_inputs: Int[Tensor, "item frame cell"]
    context_outputs: Int[Tensor, "item frame cell"]
    present: Bool[Tensor, "item frame"]

    def __post_init__(self) -> None:
        items, cells = self.query.shape
        frames = self.present.shape[-1]
        for name in ("context_inputs", "context_outputs"):
            shape = tuple(getattr(self, name).shape)
            if shape != (items, frames, cells):
                raise InvalidInput(
                    f"{name}: expected shape {(items, frames, cells)} (item, frame, cell), got {shape}"
                )

    def __repr__(self) -> str:
        items, cells = self.query.shape
        shown = sorted(set(self.present.sum(-1).tolist())) or [0]
        frames = str(shown[0]) if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
        return f"Condition({items} items of {cells} cells, {frames} demonstrations each, {self.query.device})"

    def __len__(self) -> int:
        return self.query.shape[0]

    def __getitem__(self, items: slice | Tensor) -> Condition:
        return Condition(
            self.query[items], self.context_inputs[items], self.context_outputs[items], self.present[items]
        )

    def to(self, device: torch.device | str) -> Condition:
        """The same condition on another device."""
        return Condition(
            self.query.to(device),
            self.context_inputs.to(device),
            self.context_outputs.to(device),
            self.present.to(device),
        )
