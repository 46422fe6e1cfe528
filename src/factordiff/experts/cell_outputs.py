"""What experts say about a large vocabulary: at the cells they were asked about alone, taken out a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.expert import Expert, described
from factordiff.experts.top_k import TopK
from factordiff.types import Cells, ExpertLogProbs, Tokens

# Bytes of log-probabilities, of all experts together, that are worked on at a time unless told otherwise: what fits a
# processor's cache, and what keeps a GPU busy.
CHUNK = {"cpu": 2**22, "cuda": 2**27}


@runtime_checkable
class SupportsCells(Protocol):
    """An expert that can compute its output layer where it is asked alone."""

    def log_probs_at(self, x_t: Tokens, encoded: Any, cells: Cells) -> Float[Tensor, "asked value"]:
        """Normalised log-probabilities at these cells, in reading order: row by row, then cell by cell."""


@runtime_checkable
class SupportsPlaces(Protocol):
    """The same with the cells by their numbers in reading order, row * cells + cell, which rise.

    How many they are is then known without a look at the device: on a GPU nothing waits, not even for the passes of
    the experts before.
    """

    def log_probs_at_places(
        self, x_t: Tokens, encoded: Any, places: Int[Tensor, " asked"]
    ) -> Float[Tensor, "asked value"]:
        """Normalised log-probabilities at these cells."""


class CellOutput:
    """One expert's distributions, of which `index` are those asked for, in reading order."""

    def __init__(
        self, log_probs: Float[Tensor, "cell value"] | TopK, index: Int[Tensor, " asked"] | None
    ) -> None:
        self.log_probs, self.index = log_probs, index

    @property
    def asked(self) -> Float[Tensor, "asked value"]:
        """Those asked for alone, unless they were cut."""
        assert isinstance(self.log_probs, Tensor)
        return self.log_probs if self.index is None else self.log_probs[self.index]

    def write(self, places: Int[Tensor, " some"], out: Float[Tensor, "some value"]) -> None:
        """Those at some places of the order, into `out`."""
        cells = places if self.index is None else self.index[places]
        if isinstance(self.log_probs, Tensor) and self.log_probs.dtype == out.dtype:
            torch.index_select(self.log_probs, 0, cells, out=out)
        else:
            out.copy_(self.log_probs.at(cells) if isinstance(self.log_probs, TopK) else self.log_probs[cells])


class CellOutputs:
    """What every expert says at the cells asked about; `row` and `cell` say which those are, in reading order."""

    def __init__(
        self, asked: AskedCells, values: int, errors: Any, chunk: int | None = None, top_k: int | None = None
    ) -> None:
        self.row, self.cell, self.shape = asked.row, asked.cell, asked.shape
        self.values, self.errors = values, errors
        self.chunk = CHUNK.get(self.row.device.type, CHUNK["cuda"]) if chunk is None else chunk
        self.top_k = top_k
        self.each: list[CellOutput] = []

    def forward(self, expert: Expert, x_t: Tokens, encoded: Any, asked: AskedCells) -> None:
        """One more expert, about these rows: at the cells alone if it can be asked so, else about all of theirs."""
        expected: tuple[int, ...] = (len(self.row), self.values)
        x_t, index = (
            x_t.clone(),
            None,
        )  # an expert that writes into what it is given must not change the state
        if isinstance(expert, SupportsPlaces):
            log_probs = expert.log_probs_at_places(x_t, encoded, asked.places)
        elif isinstance(expert, SupportsCells):
            log_probs = expert.log_probs_at(x_t, encoded, asked.mask)
        else:
            log_probs, index, expected = (
                expert.log_probs(x_t, encoded),
                asked.places,
                (*x_t.shape, self.values),
            )
        if not isinstance(log_probs, Tensor) or tuple(log_probs.shape) != expected:
            raise InvalidInput(
                f"experts: expert {len(self) + 1} returned {described(log_probs)}, "
                f"expected {expected} ({'asked cell' if index is None else 'batch, cell'}, value)"
            )
        self.append(CellOutput(log_probs.reshape(-1, self.values), index))

    def append(self, said: CellOutput) -> None:
        """What one more expert says; cut to its likeliest values where those are all that is kept."""
        if self.top_k is not None and isinstance(said.log_probs, Tensor):
            said = CellOutput(TopK.of(said.asked, self.top_k), None)
        self.each.append(said)

    @property
    def dtype(self) -> torch.dtype:
        """The finest of the experts' precisions, float32 at least."""
        double = any(said.log_probs.dtype == torch.float64 for said in self.each)
        return torch.float64 if double else torch.float32

    @property
    def together(self) -> int:
        """How many cells make a chunk."""
        return max(1, self.chunk // (len(self) * self.values * self.dtype.itemsize))

    def __len__(self) -> int:
        return len(self.each)

    def __repr__(self) -> str:
        return f"CellOutputs({len(self)} experts about {len(self.row)} cells, {self.values} values)"

    def chunks(
        self, among: Cells | None = None, at_most: int | None = None
    ) -> Iterator[Int[Tensor, " some"]]:
        """The places of the cells in the order, so many at a time; of some of them, if told which.

        How many those are is on the device. Told that they are `at_most` so many, it does not wait to look: where they
        are fewer, places of other cells follow.
        """
        if among is None:
            places = torch.arange(len(self.row), device=self.row.device)
        elif at_most is None:
            places = among[self.row, self.cell].nonzero().squeeze(-1)
        else:
            inside = among[self.row, self.cell].to(torch.uint8)
            places = inside.argsort(descending=True, stable=True)[:at_most]
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
