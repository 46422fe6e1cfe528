"""Which cells are revealed next: rules for the one loop.

A rule speaks three times in a step. `due` and `candidates` come before the experts are asked: the next step at
which anything can happen, and the cells that may be revealed then; a row without any is idle and costs no pass.
`choose` comes after: the cells that are, picked from the composed distribution before any value is drawn.
(Ordering by the probability of a value just drawn, as some samplers do, makes even a single exact expert wrong.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.sampling.window import Window
from factordiff.schema.values import Whole
from factordiff.state import SamplerState
from factordiff.streams import Purpose
from factordiff.types import CellLogProbs, Cells

NEVER = 2**62

Summary = Callable[[CellLogProbs], Float[Tensor, "batch cell"]]  # a number of each distribution


@dataclass(frozen=True)
class Posterior:
    """What a rule may look at once the experts have spoken."""

    # The composed distribution of each cell; of a large vocabulary, no values are kept.
    log_probs: CellLogProbs
    log_doubt: Float[Tensor, "batch cell"]  # log(1 - margin): compare these, margins round to 1
    known: Mapping[Summary, Float[Tensor, "batch cell"]] = field(default_factory=dict)  # what rules `reads`

    def of(self, summary: Summary) -> Float[Tensor, "batch cell"]:
        """A number of each cell's distribution, such as its entropy."""
        if summary in self.known:
            return self.known[summary]
        if self.log_probs.shape[-1] == 0:
            raise InvalidInput(
                f"reveal: the distributions of a large vocabulary are not kept; name {summary.__name__} among "
                "what the rule `reads`"
            )
        return summary(self.log_probs)


class RevealRule(ABC):
    """Decides, step by step, which masked cells are revealed."""

    def due(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """The first step, from each row's own on, that is not idle: the loop moves the clock there at no cost."""
        return state.clock

    @abstractmethod
    def candidates(self, state: SamplerState) -> Cells:
        """The cells that may be revealed at this step; none makes the row idle."""

    @abstractmethod
    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """The cells revealed at this step: some of the candidates, at least one where there are any."""

    def at_most(self, candidates: Cells, state: SamplerState) -> int | None:
        """How many cells of all rows `choose` takes at most, if that is known before the experts speak.

        On a GPU a step over a large vocabulary then never waits for the passes to end.
        """
        return None

    def window(self, cells: int) -> Window | None:
        """In rows of so many cells, where a fixed number of them holds all candidates: which those are."""
        return None

    @property
    def reads(self) -> tuple[Summary, ...]:
        """What `choose` wants to know of the distributions beside their log-doubt (`Posterior.of`)."""
        return ()

    @property
    def steady(self) -> bool:
        """Whether it does the same operations whatever the numbers are, so that they can be recorded."""
        return True

    @property
    def repairs(self) -> int:
        """What a row's `repairs` begin with; 0 unless the rule has second thoughts (`revised`)."""
        return 0

    def revised(
        self, state: SamplerState, log_doubt: Float[Tensor, "batch cell"]
    ) -> tuple[SamplerState, Int[Tensor, "item particle"] | None]:
        """A step's second thoughts, if the rule `repairs`: the state, and whom particles come from if they moved.

        `log_doubt` is that of the composed distributions of this step; the state's is of what was committed.
        """
        return state, None


class Wrapped(RevealRule):
    """Another rule and something more: whatever is not said otherwise is as that rule has it."""

    rule: RevealRule

    def due(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """As the rule has it."""
        return self.rule.due(state)

    def candidates(self, state: SamplerState) -> Cells:
        """As the rule has it."""
        return self.rule.candidates(state)

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """As the rule has it."""
        return self.rule.choose(posterior, candidates, state)

    def at_most(self, candidates: Cells, state: SamplerState) -> int | None:
        """As the rule has it."""
        return self.rule.at_most(candidates, state)

    def window(self, cells: int) -> Window | None:
        """As the rule has it."""
        return self.rule.window(cells)

    @property
    def reads(self) -> tuple[Summary, ...]:
        """As the rule has it."""
        return self.rule.reads

    @property
    def steady(self) -> bool:
        """As the rule has it."""
        return self.rule.steady

    @property
    def repairs(self) -> int:
        """As the rule has it."""
        return self.rule.repairs

    def revised(
        self, state: SamplerState, log_doubt: Float[Tensor, "batch cell"]
    ) -> tuple[SamplerState, Int[Tensor, "item particle"] | None]:
        """As the rule has it."""
        return self.rule.revised(state, log_doubt)


@dataclass(frozen=True)
class Ancestral(RevealRule):
    r"""Each masked cell is revealed with probability $\rho_j = 1/(T-j)$, independently; the last step takes the rest.

    This is the reverse process at $t_j = 1 - j/T$. Cells revealed together are drawn independently, so even an
    exact expert is off by O(1/T).

    Paper: Eq. (1), (9).
    """

    steps: int = 128
    steady = False  # how far it looks ahead depends on the numbers it draws

    def __post_init__(self) -> None:
        Whole(1).read(self.steps, "steps")

    def due(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """The first step at which some cell's turn has come; which one that is, only the numbers know."""
        step, hidden = state.clock, state.masked.any(-1)
        while True:
            idle = hidden & ~self.candidates(replace(state, clock=step)).any(-1)
            if not idle.any():
                return step
            step = step + idle.to(step.dtype)

    def candidates(self, state: SamplerState) -> Cells:
        """The cells whose turn it is: known before any expert speaks."""
        left = (self.steps - state.clock).clamp(min=1)
        uniforms = state.draws.cells(Purpose.REVEAL, state.clock, state.masked.shape[1])
        return state.masked & (uniforms * left[:, None] < 1.0)

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """All of them."""
        return candidates

    def at_most(self, candidates: Cells, state: SamplerState) -> int:
        """All of them."""
        return int(candidates.sum())


@dataclass(frozen=True)
class ByConfidence(RevealRule):
    r"""The cells with the largest top-2 margin first, $n_j = \lfloor N(j+1)/T\rfloor - \lfloor Nj/T\rfloor$ at step j.

    N is the number of masked cells the row began with. For T > N this is one cell per pass in the surest order
    and T - N idle steps. Ties go to the lowest cell.

    Paper: appendix "Diffusion Sampling" (128 steps).
    """

    steps: int = 128

    def __post_init__(self) -> None:
        Whole(1).read(self.steps, "steps")

    def due(self, state: SamplerState) -> Int[Tensor, " batch"]:
        r"""The step of the next cell: the first $j$ with $\lfloor N(j+1)/T\rfloor$ above what is done."""
        start = state.start.sum(-1).clamp(min=1)
        done = torch.div(start * state.clock, self.steps, rounding_mode="floor")
        return torch.div(self.steps * (done + 1) + start - 1, start, rounding_mode="floor") - 1

    def quota(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """How many cells this step reveals."""
        start, step = state.start.sum(-1), state.clock
        due = torch.div(start * (step + 1), self.steps, rounding_mode="floor")
        done = torch.div(start * step, self.steps, rounding_mode="floor")
        return (due - done).clamp(min=0)

    def candidates(self, state: SamplerState) -> Cells:
        """Every masked cell, unless the step's quota is zero."""
        return state.masked & (self.quota(state) > 0)[:, None]

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """The quota's worth of the least doubtful."""
        return surest(posterior.log_doubt, candidates, self.quota(state))

    def at_most(self, candidates: Cells, state: SamplerState) -> int:
        """The quotas together."""
        return int(self.quota(state).sum())


def at_next_reveal(state: SamplerState, rule: RevealRule) -> SamplerState:
    """Every item's clock at its next step with something to reveal: idle steps cost nothing."""
    due = torch.where(state.masked.any(-1), rule.due(state), NEVER).view(-1, state.particles).amin(-1)
    clock = due.repeat_interleave(state.particles)
    return replace(state, clock=torch.where(clock < NEVER, clock, state.clock))


def ticked(state: SamplerState) -> SamplerState:
    """The clock of every unfinished item moves on."""
    unfinished = state.masked.view(-1, state.particles * state.x_t.shape[1]).any(-1)
    return replace(state, clock=state.clock + unfinished.repeat_interleave(state.particles).to(torch.int64))


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
