"""What experts say about a large vocabulary: at the cells they were asked about alone, taken out a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.top_k import TopK
from factordiff.types import Cells, ExpertLogProbs, Tokens

CHUNK = 2**25  # bytes of log-probabilities, of all experts together, that are worked on at a time


@runtime_checkable
class AskedAtCells(Protocol):
    """An expert that can compute its output layer where it is asked alone."""

    def log_probs_at(self, x_t: Tokens, encoded: Any, cells: Cells) -> Float[Tensor, "asked value"]:
        """Normalised log-probabilities at these cells, in reading order: row by row, then cell by cell."""
        ...


class Said:
    """One expert's distributions, of which `index` are those asked for, in reading order."""

    def __init__(
        self, log_probs: Float[Tensor, "cell value"] | TopK, index: Int[Tensor, " asked"] | None
    ) -> None:
        self.log_probs, self.index = log_probs, index

    def write(self, places: Int[Tensor, " some"], out: Float[Tensor, "some value"]) -> None:
        """Those at some places of the order, into `out`."""
        cells = places if self.index is None else self.index[places]
        if isinstance(self.log_probs, Tensor) and self.log_probs.dtype == out.dtype:
            torch.index_select(self.log_probs, 0, cells, out=out)
        else:
            out.copy_(self.log_probs.at(cells) if isinstance(self.log_probs, TopK) else self.log_probs[cells])


def say(
    expert: Expert, x_t: Tokens, encoded: Any, cells: Cells, top_k: int | None = None, number: int = 0
) -> Said:
    """Ask one expert about some cells of some rows: by `log_probs_at` where it has that, else about all of them."""
    # A copy: an expert that writes into what it is given must not change the state.
    size = expert.vocabulary.size
    if isinstance(expert, AskedAtCells):
        log_probs, index = expert.log_probs_at(x_t.clone(), encoded, cells), None
        expected: tuple[int, ...] = (int(cells.sum()), size)
    else:
        log_probs, index = expert.log_probs(x_t.clone(), encoded), cells.flatten().nonzero().squeeze(-1)
        expected = (*x_t.shape, size)
    if tuple(log_probs.shape) != expected:
        raise InvalidInput(
            f"experts: expert {number} returned log-probabilities of shape {tuple(log_probs.shape)}, "
            f"expected {expected} ({'asked cell' if index is None else 'batch, cell'}, value)"
        )
    flat = log_probs.reshape(-1, size)
    if top_k is None:
        return Said(flat, index)
    return Said(TopK.of(flat if index is None else flat[index], top_k), None)


class Asked:
    """What every expert says at the cells asked about; `row` and `cell` say which those are, in reading order."""

    def __init__(
        self, each: Sequence[Said], cells: Cells, values: int, errors: Any, chunk: int = CHUNK
    ) -> None:
        self.each, self.values, self.errors = each, values, errors
        self.row, self.cell = cells.nonzero().T
        self.shape = cells.shape
        double = any(said.log_probs.dtype == torch.float64 for said in each)
        self.dtype = torch.float64 if double else torch.float32
        self.together = max(1, chunk // (len(each) * values * self.dtype.itemsize))  # cells of a chunk

    def __len__(self) -> int:
        return len(self.each)

    def __repr__(self) -> str:
        return f"Asked({len(self)} experts about {len(self.row)} cells, {self.values} values)"

    def chunks(self, among: Cells | None = None) -> Iterator[Int[Tensor, " some"]]:
        """The places of the cells in the order, so many at a time; of some of them, if told which."""
        places = torch.arange(len(self.row), device=self.row.device)
        if among is not None:
            places = places[among[self.row, self.cell]]
        return iter(places.split(self.together)) if len(places) else iter(())

    def at(
        self, places: Int[Tensor, " some"], buffer: Float[Tensor, "expert most value"] | None = None
    ) -> Float[Tensor, "expert some 1 value"]:
        """What is said at some places of the order, each cell in a row of its own; inside `buffer`, if there is one."""
        out = self.buffer(len(places)) if buffer is None else buffer[:, : len(places)]
        for part, said in zip(out, self.each, strict=True):
            said.write(places, part)
        return out.unsqueeze(2)

    def buffer(self, cells: int | None = None) -> Float[Tensor, "expert most value"]:
        """Room for a chunk, or for so many cells."""
        cells = min(self.together, len(self.row)) if cells is None else cells
        return torch.empty(len(self), cells, self.values, dtype=self.dtype, device=self.row.device)

    def whole(self) -> ExpertLogProbs:
        """All of it with the cells in their places; about the others nobody says anything, which is uniform."""
        full = torch.empty(len(self), *self.shape, self.values, dtype=self.dtype, device=self.row.device)
        full.fill_(-torch.tensor(float(self.values)).log().item())
        for places in self.chunks():
            full[:, self.row[places], self.cell[places]] = self.at(places).squeeze(2)
        return full
