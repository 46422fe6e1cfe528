"""A step with every place taken: after the experts' passes one piece of work, which a GPU can replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import sum_error
from factordiff.errors import InvalidInput
from factordiff.sampling.population import Population
from factordiff.sampling.recorded import Recorded
from factordiff.sampling.run import Run
from factordiff.sampling.verified import disagreement


class Stepped(NamedTuple):
    """What a step changes."""

    x_t: Int[Tensor, "item particle cell"]
    log_density: Float[Tensor, "expert item particle"]
    step: Int[Tensor, " item"]
    error: Float[Tensor, " expert"]  # of the experts' distributions


class FullHouse:
    """The steps of a run in which all places are taken, as most are while items wait.

    Every item then has one row with something to reveal, so nothing need be looked up between the passes and the end
    of the step, and no shape changes. On a GPU the step is recorded at its first call and held against the plain one;
    where that fails or differs it goes on as it is, and `failure` says why.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._advance: Callable[..., Stepped] | None = None
        self.failure: str | None = None
        # Particles that wait for each other, targets, repairs and memory need more than this; so does looking ahead.
        plain = run.particles == 1 and run.beta is None and run.rule.repairs == 0 and run.rule.steady
        self._able = plain and run.leaving and run.savings.idle and not run.panel.remembers

    def takes(self, population: Population) -> bool:
        """Whether this step can be one of these."""
        return self._able and len(population) == self._run.places and self._run.panel.believed

    def step(self, population: Population) -> Population:
        """Ask everybody about everything, and go on; the same as the parts of a step one after the other."""
        run = self._run
        spoken = run.panel.ask_all(population.x_t.squeeze(1))
        given = (population.x_t, population.log_density, population.step, population.place, *spoken)
        if self._advance is None:
            self._advance = self._recorded(given) if population.x_t.is_cuda else self._plain
        stepped = self._advance(*given)
        run.panel.note(stepped.error)
        run.count(population.place)
        return replace(population, x_t=stepped.x_t, log_density=stepped.log_density, step=stepped.step)

    def _plain(
        self,
        x_t: Int[Tensor, "item particle cell"],
        log_density: Float[Tensor, "expert item particle"],
        step: Int[Tensor, " item"],
        place: Int[Tensor, " item"],
        *spoken: Tensor,
    ) -> Stepped:
        run = self._run
        population = Population(x_t, log_density, torch.zeros_like(log_density[0]), step, place)
        population, moment, candidates = run.skip_idle(population)
        log_probs = run.panel.side_by_side(spoken)
        rows = torch.arange(len(population), device=place.device)
        revealed, _ = run.fill(population, rows, moment, candidates.flatten(0, 1), log_probs)
        after = run.tick(revealed)
        return Stepped(after.x_t, after.log_density, after.step, sum_error(log_probs, moment.masked))

    def _recorded(self, given: tuple[Tensor, ...]) -> Callable[..., Stepped]:
        expected = self._plain(*given)
        try:
            recorded = Recorded(self._plain, *given)
            found = recorded(*given)
        except Exception as error:
            if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                raise
            self.failure = f"step: {type(error).__name__}: {error}"
            return self._plain
        self.failure = disagreement("step", found, expected, expected.log_density.dtype)
        return recorded if self.failure is None else self._plain
