"""What a composition is: the experts' distributions and the state in, one distribution per cell out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.types import CellLogProbs, Cells, ExpertLogProbs, LogDensities, RoutingMap, Tokens


@dataclass(frozen=True)
class State:
    """What a composition may look at besides the experts' distributions."""

    x_t: Tokens
    masked: Cells
    log_density: LogDensities  # ell_m = log p_m(x_U), tracked along each row's path
    item: Int[Tensor, " batch"]  # which item a row belongs to

    def __repr__(self) -> str:
        rows, cells = self.x_t.shape
        return f"State({rows} rows of {cells} cells, {int(self.masked.sum())} of them masked)"

    @classmethod
    def start(cls, x_t: Tokens, mask: int, experts: int) -> State:
        """The state of rows about which nothing is known yet: one row per item, zero log-densities."""
        zeros = torch.zeros(experts, len(x_t), dtype=torch.float64, device=x_t.device)
        return cls(x_t, x_t == mask, zeros, torch.arange(len(x_t), device=x_t.device))


@dataclass(frozen=True)
class Composed:
    """One distribution per cell, what it cost, and who spoke."""

    log_probs: CellLogProbs
    log_z: Float[Tensor, "batch cell"] | None = None  # log of the mass a product lost at each cell
    routing: RoutingMap | None = None  # z: the expert that speaks for each cell
    log_kappa: LogDensities | None = None  # set: one expert, drawn by these, speaks for all cells of a step
    log_doubt: Float[Tensor, "batch cell"] | None = None  # set: order reveals by this, not by log_probs

    def __repr__(self) -> str:
        rows, cells, values = self.log_probs.shape
        extras = ("log_z", "routing", "log_kappa", "log_doubt")
        also = "".join(f", with {name}" for name in extras if getattr(self, name) is not None)
        return f"Composed({rows} rows of {cells} cells with {values} values{also})"


class Composition(ABC):
    """A way of combining experts. Subclass it, implement `__call__`, and pass it to the sampler."""

    @abstractmethod
    def __call__(self, log_probs: ExpertLogProbs, state: State) -> Composed:
        """Combine the experts' distributions at the given state."""

    def target(self, experts: int) -> Float[Tensor, " expert"] | None:
        r"""The exponents $\beta_m$ of the product that particles are to be corrected towards, if any."""
        return None


class Single(Composition):
    """One expert alone: the composition that does nothing."""

    def __init__(self, expert: int = 0) -> None:
        if expert < 0:
            raise InvalidInput(f"expert: expected the index of an expert (0 or more), got {expert}")
        self.expert = expert

    def __call__(self, log_probs: ExpertLogProbs, state: State) -> Composed:
        """That expert's own distribution."""
        if self.expert >= len(log_probs):
            raise InvalidInput(f"expert: expected an index below {len(log_probs)}, got {self.expert}")
        return Composed(log_probs[self.expert])

    def __repr__(self) -> str:
        return f"Single({self.expert})"


def per_expert(
    name: str, given: Sequence[float] | None, experts: int, default: float, like: Tensor
) -> Float[Tensor, " expert"]:
    """One number per expert as a tensor: the given ones, or the default for each."""
    if given is not None and len(given) != experts:
        raise InvalidInput(f"{name}: expected {experts} numbers, one per expert, got {len(given)}")
    numbers = [default] * experts if given is None else list(given)
    return torch.tensor(numbers, dtype=like.dtype, device=like.device)


def checked(name: str, given: Sequence[float] | None, *, positive: bool) -> tuple[float, ...] | None:
    """The given numbers as floats; negative, non-finite (or, if `positive`, zero) ones are refused."""
    if given is None:
        return None
    numbers = tuple(float(number) for number in given)
    for number in numbers:
        if not (number > 0 if positive else number >= 0) or number == float("inf"):
            wanted = "positive" if positive else "non-negative"
            raise InvalidInput(
                f"{name}: expected finite {wanted} numbers, one per expert, got {list(numbers)}"
            )
    return numbers


def sum_error(log_probs: ExpertLogProbs, masked: Cells) -> Float[Tensor, " expert"]:
    r"""The largest $|\log\sum_v p_m(v)|$ over the masked cells, expert by expert; NaN stays NaN."""
    error = torch.where(masked, log_probs.logsumexp(-1).abs(), 0.0)
    return error.flatten(1).amax(1) if error.numel() else error.new_zeros(len(error))


def check_log_probs(log_probs: ExpertLogProbs, masked: Cells) -> None:
    """Refuse distributions that are not: NaN, or not summing to one at some masked cell."""
    refuse(sum_error(log_probs, masked))


def refuse(errors: Float[Tensor, " expert"], tolerance: float = 1e-3) -> None:
    """Raise for the first expert whose `sum_error` is too large."""
    for expert, error in enumerate(errors.tolist()):
        if not error <= tolerance:
            what = "contain NaN" if error != error else f"sum to one only within a factor of e^{error:.3g}"
            raise InvalidInput(
                f"log_probs: those of expert {expert} {what} at a masked cell; "
                "expected normalised log-probabilities (log-softmax over the values)"
            )
