"""Where two runs of one loop part, and how near the tie was that made them.

Networks round differently in another batch shape. The same loop may then reveal another cell, or another value, where
two were nearly equal; everything after that step may differ. So a difference is explained by its first step alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.composition.confidence import log_doubt
from factordiff.composition.routing import Routing
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert
from factordiff.sampling.reveal import Posterior, RevealRule, Wrapped
from factordiff.state import SamplerState
from factordiff.types import Cells

ROUNDINGS = 2.0  # both sides of a tie may be rounded
NEVER = 2**31


@dataclass(frozen=True)
class Trajectory:
    """Answers and the step at which each cell was revealed: together every state on the way."""

    x_0: Int[Tensor, "item cell"]
    step: Int[Tensor, "item cell"]


class RecordingRule(Wrapped):
    """Another rule, and a note of the step at which it reveals each cell of the first items."""

    steady = False  # whom it takes notes about depends on who is there

    def __init__(self, rule: RevealRule, items: int, cells: int, device: torch.device) -> None:
        self.rule = rule
        self.step = torch.full((items, cells), NEVER, device=device)

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """As the rule has it, and noted."""
        chosen = self.rule.choose(posterior, candidates, state)
        rows = (state.draws.item < len(self.step)).nonzero().squeeze(-1)
        item = state.draws.item[rows]
        now = state.clock[rows, None].to(self.step.dtype)
        self.step[item] = torch.where(chosen[rows], now, self.step[item])
        return chosen


@dataclass(frozen=True)
class Divergence:
    """What was found where the answers of two runs differ."""

    items: Int[Tensor, " some"]
    gap: Float[Tensor, " some"]  # nats between what the two runs chose, as one of them sees it
    rounding: Float[Tensor, " some"]  # nats by which an expert's log-doubts there differ with the batch

    @property
    def near_ties(self) -> Bool[Tensor, " some"]:
        """Where rounding is enough to make one choice or the other."""
        return self.gap <= ROUNDINGS * self.rounding


@torch.no_grad()
def divergences(
    one: Trajectory,
    other: Trajectory,
    sides: tuple[Sequence[Expert], Sequence[Expert]],
    condition: Condition,
    batch: BatchSizes,
    alone_in: int = 1,
) -> Divergence:
    """For every item whose answers differ: the first step at which the runs part, and the gap at that state.

    `sides` are the experts as each run asked them. The state is shown to both once more: to the first row by row (or
    in batches of `alone_in`), to the second in batches of every size it knows, so that what rounding does to it can
    be seen.
    """
    mask = sides[0][0].vocabulary.mask
    items = (one.x_0 != other.x_0).any(-1).nonzero().squeeze(-1)
    if len(items) == 0:
        return Divergence(items, torch.zeros(0), torch.zeros(0))
    one, other = (Trajectory(run.x_0[items], run.step[items]) for run in (one, other))
    apart = (one.x_0 != other.x_0) | (one.step != other.step)
    first = torch.where(apart, torch.minimum(one.step, other.step), NEVER).amin(-1, keepdim=True)
    x_t = torch.where(one.step < first, one.x_0, mask)  # the last state that both were in
    told = condition[items]
    alone = _heard(sides[0], x_t, told, alone_in)
    # Batches that are not filled up may have any size: some of them stand for all.
    sizes = batch.sizes or BatchSizes.fixed(batch.rows, 2).sizes
    said = torch.stack([log_doubt(_heard(sides[1], x_t, told, size)) for size in sizes])
    unlike = (said - log_doubt(alone)).abs().amax((0, 1))
    rounding = torch.where(x_t == mask, unlike, 0.0).amax(-1)
    rounding = torch.maximum(rounding, rounding.median())  # a state may round well in the few batches tried
    doubt = log_doubt(Routing()(alone, SamplerState.begin(x_t, mask, len(alone))).log_probs)
    gap = torch.stack(
        [
            _gap(alone[:, row], doubt[row], *(_chosen(run, row, first[row]) for run in (one, other)))
            for row in range(len(items))
        ]
    )
    return Divergence(items.cpu(), gap.cpu(), rounding.cpu())


def _chosen(run: Trajectory, row: int, step: Tensor) -> dict[int, int]:
    """The cells that a run revealed at a step, and their values."""
    cells = (run.step[row] == step).nonzero().squeeze(-1).tolist()
    return {cell: int(run.x_0[row, cell]) for cell in cells}


def _gap(
    log_probs: Float[Tensor, "expert cell value"],
    doubt: Float[Tensor, " cell"],
    one: dict[int, int],
    other: dict[int, int],
) -> Tensor:
    """How far apart the two choices were: in order if other cells were revealed, else in who spoke or what was said."""
    swapped = sorted(one.keys() ^ other.keys())
    if swapped:
        return doubt[swapped].max() - doubt[swapped].min()
    gaps = []
    for cell in one.keys() & other.keys():
        if one[cell] != other[cell]:
            said = log_probs[:, cell].double()
            # Within the expert that wavers most.
            values = (said[:, one[cell]] - said[:, other[cell]]).abs().min()
            sure = log_doubt(said)
            speakers = [sure[said.argmax(-1) == value] for value in (one[cell], other[cell])]
            between = [(a - b).abs() for a in speakers[0] for b in speakers[1]]
            gaps.append(torch.stack([values, *between]).min())
    return torch.stack(gaps).max()


def _heard(
    experts: Sequence[Expert], x_t: Int[Tensor, "item cell"], told: Condition, size: int
) -> Float[Tensor, "expert item cell value"]:
    """What the experts say in batches of one size; the last is filled up with its last row."""
    said = []
    for first in range(0, len(x_t), size):
        some = torch.arange(first, first + size, device=x_t.device).clamp(max=len(x_t) - 1)
        each = [expert.log_probs(x_t[some], expert.encode(told[some])).double() for expert in experts]
        said.append(torch.stack(each))
    return torch.cat(said, 1)[:, : len(x_t)]
