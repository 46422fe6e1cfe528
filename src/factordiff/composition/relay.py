"""TIE: every expert goes its own way for a few steps, then all go on from where the surest of them has got."""

from __future__ import annotations

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.method import declare
from factordiff.composition.options import Option
from factordiff.composition.routing import routed
from factordiff.state import SamplerState
from factordiff.types import ExpertLogProbs

EVERY = Option("every", "Steps between relays.", kind="whole", default=1, least=1.0, most=100_000.0)


@declare("tie", EVERY, paths="relay")
class Relay(Composition):
    r"""Particle k of an item is expert k's own trajectory: $r^{(k)}_i = p_{k,i}$.

    Every `every` steps all of an item's trajectories go on from the one that is surest of its answer
    (`sampling.relay.Relayed`), and so at the end. Experts never speak side by side: in each stretch of steps one of
    them alone has filled cells. The loop asks every expert about every trajectory, M x M passes a step but for equal
    states, which are asked about once; a loop of its own would need M.

    Source: arXiv 2606.16281 (TIE), trajectories relayed between masked language models by confidence dynamics at
    answer positions. No code or details were found: the mean margin over all cells that were masked, relays at fixed
    steps and their default are ours.
    """

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """What each trajectory's own expert says."""
        own = (state.draws.particle % len(log_probs))[:, None].expand_as(state.x_t)
        return Composed(routed(log_probs, own), routing=own)

    @property
    def by_cell(self) -> bool:
        """Yes."""
        return True

    def __repr__(self) -> str:
        return "Relay()"
