"""What a composition is: the experts' distributions and the state in, one distribution per cell out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.options import check_sizes
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.tensors import Floats, as_floats
from factordiff.types import CellLogProbs, Cells, ExpertCells, ExpertLogProbs, LogDensities, RoutingMap


@dataclass(frozen=True)
class Composed:
    """One distribution per cell, what it cost, and who spoke.

    With `log_kappa` the values of a step are not drawn cell by cell: an expert is drawn by it and speaks for all
    cells that belong together. Alone, it is one distribution over the experts per row, and all cells of the row
    belong together, or one per cell, and each cell draws for itself. Beside `owners`, a label per cell, it is one per
    cell, the same at all cells of a label: those belong together, and different labels draw independently.
    """

    log_probs: CellLogProbs
    log_z: Float[Tensor, "batch cell"] | None = None  # log of the mass a product lost at each cell
    routing: RoutingMap | None = None  # z: the expert that speaks for each cell
    log_kappa: LogDensities | ExpertCells | None = None  # set: by these the experts that speak are drawn
    log_doubt: Float[Tensor, "batch cell"] | None = None  # set: order reveals by this, not by log_probs
    owners: Int[Tensor, "batch cell"] | None = None  # set: cells of one label have one speaker
    weights: ExpertCells | None = None  # how much each expert counts at each cell, if that was worked out

    def rows(self, rows: Int[Tensor, " some"]) -> Composed:
        """Some of the rows."""
        by_expert = ("log_kappa", "weights")
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        some: dict[str, Any] = {
            name: part[:, rows] if name in by_expert else part[rows]
            for name, part in parts.items()
            if part is not None
        }
        return Composed(**some)

    def __repr__(self) -> str:
        rows, cells, values = self.log_probs.shape
        extras = ("log_z", "routing", "log_kappa", "log_doubt", "owners", "weights")
        also = "".join(f", with {name}" for name in extras if getattr(self, name) is not None)
        return f"Composed({rows} rows of {cells} cells with {values} values{also})"


class Composition(ABC):
    """A way of combining experts. Subclass it, implement `__call__`, and pass it to the sampler."""

    @abstractmethod
    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """Combine the experts' distributions at the given state."""

    @property
    def by_cell(self) -> bool:
        """Whether a cell's distribution depends on what is said about that cell and on the state, and nothing else.

        Large vocabularies are then composed at the cells that may be revealed, a chunk of them at a time, each cell in
        a row of its own. Otherwise it is called once, with all cells in their places.
        """
        return False

    @property
    def remembers(self) -> bool:
        """Whether it reads what a row's path has brought so far (`log_density`), not only the tokens of x_t."""
        return False

    def asks(self, candidates: Cells, state: SamplerState) -> Cells:
        """The cells that experts must be asked about so that the candidates can be composed."""
        return candidates if self.by_cell else state.masked & candidates.any(-1, keepdim=True)

    def target(self, experts: int) -> Float[Tensor, " expert"] | None:
        r"""The exponents $\beta_m$ of the product that particles are to be corrected towards, if any."""
        return None


class PerExpert(tuple[float, ...]):
    """A number for each expert."""


def check_lengths(composition: Composition, experts: int) -> None:
    """Refuse a composition whose numbers, or those of one inside it, are of more or fewer experts."""
    for name, value in getattr(composition, "__dict__", {}).items():
        if isinstance(value, PerExpert):
            check_length(name, value, experts)
        elif isinstance(value, Composition):
            check_lengths(value, experts)


def check_length(name: str, given: Sequence[float], experts: int) -> None:
    """Refuse more or fewer numbers than experts."""
    if len(given) != experts:
        raise InvalidInput(f"{name}: expected {experts} numbers, one per expert, got {len(given)}")


def per_expert(
    name: str, given: Sequence[float] | None, experts: int, default: float, like: Tensor
) -> Float[Tensor, " expert"]:
    """One number per expert as a tensor: the given ones, or the default for each."""
    if given is not None:
        check_length(name, given, experts)
    numbers = [default] * experts if given is None else list(given)
    # Filled in place: a copy from the host could not be part of a recorded step.
    return torch.cat([like.new_full((1,), number) for number in numbers])


def checked(name: str, given: Floats | None, *, positive: bool) -> PerExpert | None:
    """The given numbers as floats; negative, non-finite (or, if `positive`, zero) ones are refused."""
    if given is None:
        return None
    numbers = as_floats(name, given)
    for number in numbers:
        if not (number > 0 if positive else number >= 0) or number == float("inf"):
            wanted = "positive" if positive else "non-negative"
            raise InvalidInput(
                f"{name}: expected finite {wanted} numbers, one per expert, got {list(numbers)}"
            )
    check_sizes(name, numbers)
    return PerExpert(numbers)
