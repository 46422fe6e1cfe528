"""Which cells are revealed next: rules for the one loop.

A rule speaks three times in a step. `due` and `candidates` come before the experts are asked: the next step at
which anything can happen, and the cells that may be revealed then; a row without any is idle and costs no pass.
`choose` comes after: the cells that are, picked from the composed distribution before any value is drawn.
(Ordering by the probability of a value just drawn, as some samplers do, makes even a single exact expert wrong.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.sampling.draws import Draws
from factordiff.streams import Purpose
from factordiff.types import CellLogProbs, Cells


@dataclass(frozen=True)
class Moment:
    """Where each row is on its way."""

    masked: Cells
    step: Int[Tensor, " batch"]  # the row's own clock
    start: Int[Tensor, " batch"]  # how many cells were masked when it began
    draws: Draws

    def of(self, rows: Int[Tensor, " some"]) -> Moment:
        """The same for some of the rows."""
        return Moment(self.masked[rows], self.step[rows], self.start[rows], self.draws[rows])


@dataclass(frozen=True)
class Belief:
    """What a rule may look at once the experts have spoken."""

    log_probs: CellLogProbs  # the composed distribution of each cell
    log_doubt: Float[Tensor, "batch cell"]  # log(1 - margin): compare these, margins round to 1


class RevealRule(ABC):
    """Decides, step by step, which masked cells are revealed."""

    def due(self, moment: Moment) -> Int[Tensor, " batch"]:
        """The first step, from each row's own on, that is not idle: the loop moves the clock there at no cost."""
        return moment.step

    @abstractmethod
    def candidates(self, moment: Moment) -> Cells:
        """The cells that may be revealed at this step; none makes the row idle."""

    @abstractmethod
    def choose(self, belief: Belief, candidates: Cells, moment: Moment) -> Cells:
        """The cells revealed at this step: some of the candidates, at least one where there are any."""

    @property
    def steady(self) -> bool:
        """Whether it does the same operations whatever the numbers are, so that they can be recorded."""
        return True

    @property
    def repairs(self) -> int:
        """How often a finished row may have cells masked again; 0 unless the rule repairs."""
        return 0

    def doubtful(self, log_doubt: Float[Tensor, "batch cell"]) -> Cells:
        """The cells to mask again, from the log-doubt with which each was committed."""
        return torch.zeros_like(log_doubt, dtype=torch.bool)


@dataclass(frozen=True)
class Ancestral(RevealRule):
    r"""Each masked cell is revealed with probability $\rho_j = 1/(T-j)$, independently; the last step takes the rest.

    This is the reverse process at $t_j = 1 - j/T$. Cells revealed together are drawn independently, so even an
    exact expert is off by O(1/T).

    Paper: Eq. (1), (9).
    """

    steps: int = 128

    def __post_init__(self) -> None:
        _checked_steps(self.steps)

    def due(self, moment: Moment) -> Int[Tensor, " batch"]:
        """The first step at which some cell's turn has come; which one that is, only the numbers know."""
        step, hidden = moment.step, moment.masked.any(-1)
        while True:
            idle = hidden & ~self.candidates(replace(moment, step=step)).any(-1)
            if not idle.any():
                return step
            step = step + idle.to(step.dtype)

    @property
    def steady(self) -> bool:
        """No: how far it looks ahead depends on the numbers it draws."""
        return False

    def candidates(self, moment: Moment) -> Cells:
        """The cells whose turn it is: known before any expert speaks."""
        left = (self.steps - moment.step).clamp(min=1)
        uniforms = moment.draws.cells(Purpose.REVEAL, moment.step, moment.masked.shape[1])
        return moment.masked & (uniforms * left[:, None] < 1.0)

    def choose(self, belief: Belief, candidates: Cells, moment: Moment) -> Cells:
        """All of them."""
        return candidates


@dataclass(frozen=True)
class ByConfidence(RevealRule):
    r"""The cells with the largest top-2 margin first, $n_j = \lfloor N(j+1)/T\rfloor - \lfloor Nj/T\rfloor$ at step j.

    N is the number of masked cells the row began with. For T > N this is one cell per pass in the surest order
    and T - N idle steps. Ties go to the lowest cell.

    Paper: appendix "Diffusion Sampling" (128 steps).
    """

    steps: int = 128

    def __post_init__(self) -> None:
        _checked_steps(self.steps)

    def due(self, moment: Moment) -> Int[Tensor, " batch"]:
        r"""The step of the next cell: the first $j$ with $\lfloor N(j+1)/T\rfloor$ above what is done."""
        start = moment.start.clamp(min=1)
        done = torch.div(start * moment.step, self.steps, rounding_mode="floor")
        return torch.div(self.steps * (done + 1) + start - 1, start, rounding_mode="floor") - 1

    def quota(self, moment: Moment) -> Int[Tensor, " batch"]:
        """How many cells this step reveals."""
        step = moment.step
        due = torch.div(moment.start * (step + 1), self.steps, rounding_mode="floor")
        done = torch.div(moment.start * step, self.steps, rounding_mode="floor")
        return (due - done).clamp(min=0)

    def candidates(self, moment: Moment) -> Cells:
        """Every masked cell, unless the step's quota is zero."""
        return moment.masked & (self.quota(moment) > 0)[:, None]

    def choose(self, belief: Belief, candidates: Cells, moment: Moment) -> Cells:
        """The quota's worth of the least doubtful."""
        return surest(belief.log_doubt, candidates, self.quota(moment))


def surest(log_doubt: Float[Tensor, "batch cell"], among: Cells, count: Int[Tensor, " batch"]) -> Cells:
    """The `count` least doubtful cells of each row; ties go to the lowest cell."""
    taken = torch.arange(among.shape[-1], device=among.device) < count[:, None]
    return among & cells_at(surest_first(log_doubt, among), taken)


def surest_first(log_doubt: Float[Tensor, "batch cell"], among: Cells) -> Int[Tensor, "batch cell"]:
    """The cells in the order of their doubt; those that do not take part come last."""
    return _keys(log_doubt, among).argsort(dim=-1, stable=True)


def cells_at(order: Int[Tensor, "batch cell"], taken: Cells) -> Cells:
    """The cells at the taken places of an order."""
    return torch.zeros_like(taken).scatter(-1, order, taken)


def surest_one(log_doubt: Float[Tensor, "batch cell"], among: Cells) -> Cells:
    """The least doubtful cell of each row, if any takes part: `surest` of one, without sorting."""
    lowest = _keys(log_doubt, among).argmin(dim=-1, keepdim=True)
    return among & (torch.arange(among.shape[-1], device=among.device) == lowest)


def _keys(log_doubt: Float[Tensor, "batch cell"], among: Cells) -> Float[Tensor, "batch cell"]:
    # +2 lies above every log-doubt (at most 0): cells that do not take part come last, after those whose doubt is
    # no number, which must come some time, or the loop would wait for them for ever.
    return torch.where(among, log_doubt.nan_to_num(nan=1.0, neginf=-torch.inf), 2.0)


def _checked_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidInput(f"steps: expected a whole number of at least 1, got {steps!r}")
