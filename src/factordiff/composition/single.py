"""One expert alone."""

from __future__ import annotations

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.method import declare
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.types import ExpertLogProbs


@declare("single", fewest=1, most=1)
class Single(Composition):
    """One expert alone: the composition that does nothing."""

    by_cell = True

    def __init__(self, expert: int = 0) -> None:
        if expert < 0:
            raise InvalidInput(f"expert: expected the index of an expert (0 or more), got {expert}")
        self.expert = expert

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """That expert's own distribution."""
        if self.expert >= len(log_probs):
            raise InvalidInput(f"expert: expected an index below {len(log_probs)}, got {self.expert}")
        return Composed(log_probs[self.expert])

    def __repr__(self) -> str:
        return f"Single({self.expert})"
