"""What a run of the loop gives back: answers, particles, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from factordiff.sampling.trace import Trace


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
    fused: str = ""  # with `fuse`: how the steps of a full bucket were run, and why not faster

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
