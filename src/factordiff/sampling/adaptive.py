r"""Rules that reveal as many cells as the experts are sure of: few passes for easy rows, many for hard ones.

All of them take the cells in the order of their log-doubt and reveal at least the surest, so every pass makes
progress, and a row of certain cells is done in one. They differ in when they stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.confidence import entropy, error_probability
from factordiff.errors import InvalidInput
from factordiff.sampling.reveal import Posterior, RevealRule, Wrapped, cells_at, surest_first, surest_one
from factordiff.schema.values import Whole
from factordiff.state import SamplerState
from factordiff.types import Cells

Bound = Literal["product", "frechet"]
BOUNDS = get_args(Bound)


class Adaptive(RevealRule):
    """A rule without a schedule: at every step every masked cell may be revealed."""

    def candidates(self, state: SamplerState) -> Cells:
        """Every masked cell."""
        return state.masked


@dataclass(frozen=True)
class ByMargin(Adaptive):
    r"""Every cell whose margin exceeds the threshold, $C_i > \theta$, and at least the surest.

    Compared as $\log(1 - C_i) < \log(1 - \theta)$, since margins of confident networks round to 1. No margin
    exceeds 1: that threshold is one cell per pass, the paper's loop without its idle steps.
    """

    threshold: float = 0.995

    def __post_init__(self) -> None:
        _checked_share("threshold", self.threshold)

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """The sure ones, or the surest."""
        sure = posterior.log_doubt < _log(1.0 - self.threshold)
        return candidates & (sure | surest_one(posterior.log_doubt, candidates))


@dataclass(frozen=True)
class ByEntropy(Adaptive):
    r"""The longest prefix whose entropies, the largest left out, add up to at most $\gamma$.

    $\sum_{i \in U} H_i - \max_{i \in U} H_i \le \gamma$.

    The left side bounds the joint's divergence from independent cells: what drawing U in parallel can cost.
    With $\gamma = 0$ the cells without entropy are revealed, and the surest of the others.
    """

    gamma: float = 0.005
    reads = (entropy,)

    def __post_init__(self) -> None:
        if not 0 <= self.gamma < float("inf"):
            raise InvalidInput(f"gamma: expected a finite number of nats, 0 or more, got {self.gamma!r}")

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """As many of the surest as the bound allows."""
        order = surest_first(posterior.log_doubt, candidates)
        entropies = posterior.of(entropy).gather(-1, order)
        # Each cell adds the smaller of its entropy and the largest so far: no difference of sums, which would round.
        largest = entropies.cummax(-1).values
        added = torch.minimum(entropies[:, 1:], largest[:, :-1])
        spent = torch.nn.functional.pad(added.cumsum(-1), (1, 0))
        return candidates & _prefix(order, spent <= self.gamma)


@dataclass(frozen=True)
class ByProduct(Adaptive):
    r"""The longest prefix whose likeliest values are all right with probability at least $\theta$.

    `product` takes the cells as independent, $\prod_{i \in U} p_i^{(1)} \ge \theta$. `frechet` makes no
    assumption: by Fréchet's inequality all are right with probability at least
    $1 - \sum_{i \in U} (1 - p_i^{(1)})$, and that must reach $\theta$.
    """

    threshold: float = 0.99
    bound: Bound = "product"
    reads = (error_probability,)

    def __post_init__(self) -> None:
        _checked_share("threshold", self.threshold)
        if self.bound not in BOUNDS:
            raise InvalidInput(f"bound: expected one of {', '.join(BOUNDS)}, got {self.bound!r}")

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """As many of the surest as the bound allows."""
        order = surest_first(posterior.log_doubt, candidates)
        error = posterior.of(error_probability).gather(-1, order)
        if self.bound == "product":
            allowed = torch.log1p(-error).cumsum(-1) >= _log(self.threshold)
        else:
            allowed = error.cumsum(-1) <= 1.0 - self.threshold
        return candidates & _prefix(order, allowed)


@dataclass(frozen=True)
class Repaired(Wrapped):
    r"""Another rule, and second thoughts: a full row's doubtful cells are masked and revealed again.

    Doubtful are the cells that were committed with a margin of at most `threshold`, when less was known. At most
    `rounds` times for each row, so it ends. Not for compositions with a target: their weights belong to the path.
    """

    rule: RevealRule
    threshold: float = 0.5
    rounds: int = 1

    def __post_init__(self) -> None:
        _checked_share("threshold", self.threshold)
        Whole(1).read(self.rounds, "rounds")
        if self.rule.repairs:
            raise InvalidInput(f"reveal: {self.rule!r} takes cells back itself; use a rule without repairs")

    @property
    def repairs(self) -> int:
        """How often a finished row may have cells masked again."""
        return self.rounds

    def revised(
        self, state: SamplerState, log_doubt: Float[Tensor, "batch cell"]
    ) -> tuple[SamplerState, None]:
        """Mask the doubtful cells of full rows again, unless that was done often enough."""
        assert state.log_doubt is not None
        assert state.repairs is not None
        full = ~state.masked.any(-1) & (state.repairs > 0)
        doubtful = ~(state.log_doubt < _log(1.0 - self.threshold))
        again = doubtful & state.start & full[:, None]
        after = replace(
            state,
            x_t=torch.where(again, state.mask, state.x_t),
            log_density=torch.where(again, 0.0, state.log_density),
            log_doubt=torch.where(again, -torch.inf, state.log_doubt),
            repairs=state.repairs - again.any(-1).to(torch.int64),
        )
        return after, None


def _prefix(order: Int[Tensor, "batch cell"], allowed: Cells) -> Cells:
    """The cells at the first allowed places of an order, and the very first in any case."""
    allowed = (~allowed).cumsum(-1) == 0
    allowed[:, :1] = True
    return cells_at(order, allowed)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _checked_share(name: str, share: float) -> None:
    if isinstance(share, bool) or not isinstance(share, float | int) or not 0 <= share <= 1:
        raise InvalidInput(f"{name}: expected a number from 0 to 1, got {share!r}")
