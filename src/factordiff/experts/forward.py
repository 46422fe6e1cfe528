"""Several experts asked about the rows of a state, and the check that what they say are distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.cell_outputs import CellOutputs
from factordiff.experts.expert import Expert, described, take
from factordiff.state import SamplerState
from factordiff.types import LARGE, CellLogProbs, Cells, ExpertLogProbs

SUM_TOLERANCE = 1e-3  # by which the logarithm of a sum of probabilities may be off 0


class Forward:
    """The experts, told about every item once, and asked about the rows that have something to reveal."""

    def __init__(self, experts: Sequence[Expert], condition: Any, items: int) -> None:
        self.experts, self.errors = experts, SumErrors()
        self.encoded = [expert.encode(condition) for expert in experts]
        check_encoded(tuple(self.encoded), items)

    def __call__(
        self, state: SamplerState, cells: Cells
    ) -> tuple[ExpertLogProbs | CellOutputs, Int[Tensor, " batch"]]:
        """What every expert says about these cells, and how many passes it took: none for a row without any.

        About a small vocabulary all cells are asked about: what is not needed costs nothing there.
        """
        wanted = cells.any(-1)
        rows = wanted.nonzero().squeeze(-1)
        x_t, item = state.x_t[rows], state.item[rows]
        if state.mask > LARGE:
            asked = AskedCells.of(cells)
            outputs, there = CellOutputs(asked, state.mask, self.errors), asked.among(rows, len(rows))
            for expert, encoded in zip(self.experts, self.encoded, strict=True):
                outputs.forward(expert, x_t, take(encoded, item), there)
            return outputs, len(outputs) * wanted.to(torch.int64)
        each = [
            # A copy: an expert that writes into what it is given must not change the state.
            expert.log_probs(x_t.clone(), take(encoded, item))
            for expert, encoded in zip(self.experts, self.encoded, strict=True)
        ]
        log_probs = side_by_side(each, (*x_t.shape, state.mask))
        self.errors.note(sum_error(log_probs, x_t == state.mask))
        said = log_probs if len(rows) == len(state) else among(log_probs, rows, len(state))
        return said, len(each) * wanted.to(torch.int64)

    def whole(self, state: SamplerState, cells: Cells) -> tuple[ExpertLogProbs, Int[Tensor, " batch"]]:
        """The same as one tensor over all cells, of a large vocabulary too."""
        said, passes = self(state, cells)
        if isinstance(said, CellOutputs):
            said = said.whole()
            self.errors.note(sum_error(said, cells))
        return said, passes


def check_shape(number: int, said: CellLogProbs, shape: tuple[int, ...]) -> None:
    """Refuse what an expert says about other rows, cells or values than it was asked about; people count from one."""
    if not isinstance(said, Tensor) or tuple(said.shape) != shape:
        raise InvalidInput(
            f"experts: expert {number + 1} returned {described(said)}, expected {shape} (batch, cell, value)"
        )


def side_by_side(each: Sequence[CellLogProbs], shape: tuple[int, ...]) -> ExpertLogProbs:
    """The experts' distributions in one tensor, in the finest of their precisions."""
    for number, said in enumerate(each):
        check_shape(number, said, shape)
    dtype = torch.float64 if any(said.dtype == torch.float64 for said in each) else torch.float32
    return torch.stack([said.to(dtype) for said in each])


def among(
    log_probs: Float[Tensor, "expert some cell value"], rows: Int[Tensor, " some"], count: int
) -> ExpertLogProbs:
    """What was said about some rows among all: about the others nobody says anything, which is uniform."""
    experts, _, cells, values = log_probs.shape
    nothing = log_probs.new_full((experts, count, cells, values), 1.0 / values).log()
    return nothing.index_copy(1, rows, log_probs)


def check_encoded(encoded: Any, items: int) -> None:
    """Refuse encodings of another number of items than there are, before any is taken for another's."""
    parts = encoded.values() if isinstance(encoded, dict) else encoded if isinstance(encoded, tuple) else ()
    for part in parts:
        check_encoded(part, items)
    if isinstance(encoded, Tensor) and (encoded.dim() == 0 or len(encoded) != items):
        size = "a single number" if encoded.dim() == 0 else f"an encoding of {len(encoded)}"
        raise InvalidInput(f"condition: expected one for each of {items} items, got {size}")


def sum_error(log_probs: ExpertLogProbs, masked: Cells) -> Float[Tensor, " expert"]:
    r"""The largest $|\log\sum_v p_m(v)|$ over the masked cells, expert by expert; NaN stays NaN."""
    error = torch.where(masked, log_probs.logsumexp(-1).abs(), 0.0)
    return error.flatten(1).amax(1) if error.numel() else error.new_zeros(len(error))


class SumErrors:
    """Watches that what experts say are distributions: the first are looked at at once, the others at the end.

    If a `worst` so far is given, nothing is looked at before the end.
    """

    def __init__(self, worst: Float[Tensor, " expert"] | None = None) -> None:
        self.worst = worst

    def note(self, error: Float[Tensor, " expert"]) -> None:
        """By how much distributions failed to add up to one; looking at it would wait for the device."""
        if self.worst is None:
            refuse(error)
        self.worst = error if self.worst is None else torch.maximum(self.worst, error)

    def check(self) -> None:
        """Refuse the result if some expert's distributions went bad on the way."""
        if self.worst is not None:
            refuse(self.worst)


def refuse(errors: Float[Tensor, " expert"], tolerance: float = SUM_TOLERANCE) -> None:
    """Raise for the first expert whose `sum_error` is too large."""
    for expert, error in enumerate(errors.tolist()):
        if not error <= tolerance:
            what = "contain NaN" if error != error else f"sum to one only within a factor of e^{error:.3g}"
            raise InvalidInput(
                f"log_probs: those of expert {expert + 1} {what} at a masked cell; "
                "expected normalised log-probabilities (log-softmax over the values)"
            )
