"""What a run of the loop gives back: answers, particles, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.vote import majority_vote, most_frequent
from factordiff.sampling.particles import draw_one, highest_target
from factordiff.sampling.request import Selection
from factordiff.sampling.step import StepInfo
from factordiff.sampling.trace import Trace
from factordiff.state import SamplerState
from factordiff.streams import Purpose


class Passes:
    """How many passes each item took: a pass is one expert evaluated on one row."""

    def __init__(self, items: int, device: torch.device) -> None:
        self.nominal = torch.zeros(items, dtype=torch.int64, device=device)
        self.executed = torch.zeros_like(self.nominal)

    def count(self, info: StepInfo) -> None:
        """Nominal: every expert and particle of an item that was not idle. Executed: those that were run."""
        asked, state = info.proposal, info.proposal.state
        busy = asked.candidates.view(-1, state.particles * state.x_t.shape[1]).any(-1).to(torch.int64)
        self.add(state.item, len(asked.log_probs) * busy.repeat_interleave(state.particles), asked.passes)

    def add(
        self, item: Int[Tensor, " batch"], nominal: Int[Tensor, " batch"] | int, executed: Tensor | int
    ) -> None:
        """So many passes for the rows of these items."""
        self.nominal.index_add_(0, item, torch.zeros_like(item) + nominal)
        self.executed.index_add_(0, item, torch.zeros_like(item) + executed)


@dataclass(frozen=True)
class Samples:
    """One answer per item, the particles it was chosen from, and what it cost."""

    x_0: Int[Tensor, "item cell"]
    particles: Int[Tensor, "item particle cell"]
    log_w: Float[Tensor, "item particle"]
    log_density: Float[Tensor, "expert item particle"]
    nominal_passes: Int[Tensor, " item"]  # experts x particles x steps that were not idle
    executed_passes: Int[Tensor, " item"]  # rows that experts were really asked about
    trace: Trace | None = None
    padded_passes: int = 0  # rows that only filled a batch up to a fixed size
    how: str = ""  # of an engine: in which form steps were run, and why not in a faster one

    @classmethod
    def of(
        cls,
        state: SamplerState,
        composition: Composition,
        selection: Selection,
        passes: Passes,
        trace: Trace | None = None,
        padded_passes: int = 0,
        how: str = "",
    ) -> Samples:
        """The answers of finished items, in the request's order."""
        count = state.particles
        particles, log_w = state.x_t.view(-1, count, state.x_t.shape[1]), state.log_w.view(-1, count)
        log_density = state.log_density_of_rows.view(len(state.log_density), -1, count)
        item = torch.arange(len(particles), device=log_w.device)
        chosen, beta = torch.zeros_like(item), composition.target(len(log_density))
        if selection == "draw" and count > 1:
            chosen = draw_one(log_w, state.draws[::count].rows(Purpose.SELECT, chosen))
        elif selection == "highest-target" and beta is not None:
            chosen = highest_target(log_density, beta.to(log_density.device))
        elif selection == "whole-vote":
            of_cells = state.log_density.logsumexp(0) - math.log(len(log_density))  # given cells: 0
            chosen = most_frequent(particles, of_cells.sum(-1).view(-1, count))
        x_0 = particles[item, chosen]
        if selection == "vote":
            x_0 = majority_vote(particles.transpose(0, 1), state.mask)
        return cls(
            x_0, particles, log_w, log_density, passes.nominal, passes.executed, trace, padded_passes, how
        )

    def after(self, passes: Int[Tensor, " item"]) -> Samples:
        """The same, with passes that each item took before its first step."""
        nominal, executed = self.nominal_passes + passes, self.executed_passes + passes
        return replace(self, nominal_passes=nominal, executed_passes=executed)

    @property
    def executed_over_needed(self) -> float:
        """All passes that were run, with padding, over those that were asked for: 1 is no waste."""
        needed = int(self.executed_passes.sum())
        return (needed + self.padded_passes) / max(needed, 1)

    def __repr__(self) -> str:
        items, particles, cells = self.particles.shape
        return (
            f"Samples({items} items of {cells} cells, {particles} particles, "
            f"{int(self.executed_passes.sum())} passes executed of {int(self.nominal_passes.sum())} nominal)"
        )
