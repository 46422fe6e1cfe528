"""A step with every place taken: after the experts' passes one piece of work, which a GPU can replay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import State, sum_error
from factordiff.composition.confidence import in_one_kernel
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
    what fails or differs is given up for a slower form, and `failure` says why.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._advance: Callable[..., Stepped] | None = None
        self.how = "plain"  # the form in use
        self.failure: str | None = None
        # Particles that wait for each other, targets, repairs and memory need more than this; so does looking ahead.
        plain = run.particles == 1 and run.beta is None and run.rule.repairs == 0 and run.rule.steady
        self._able = plain and run.leaving and run.savings.idle and not run.panel.remembers

    def takes(self, population: Population) -> bool:
        """Whether this step can be one of these."""
        return self._able and len(population) == self._run.places and self._run.panel.believed

    def step(self, population: Population) -> Population:
        """Ask everybody about everything, and go on; the same as the parts of a step one after the other."""
        run, given = self._run, self.given(population)
        if self._advance is None:
            self._advance = self._fastest(given) if population.x_t.is_cuda else self._plain
        stepped = self._advance(*given)
        run.panel.note(stepped.error)
        run.count(population.place)
        return replace(population, x_t=stepped.x_t, log_density=stepped.log_density, step=stepped.step)

    def given(self, population: Population) -> tuple[Tensor, ...]:
        """What a step begins with: where everybody is, and what the experts say there."""
        spoken = self._run.panel.ask_all(population.x_t.squeeze(1))
        return (population.x_t, population.log_density, population.step, population.place, *spoken)

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
        state = State(x_t.squeeze(1), moment.masked, log_density.squeeze(-1), place)
        decision = run.decide(log_probs, state, candidates.squeeze(1), moment)
        revealed = replace(
            population,
            x_t=decision.filled(state.x_t).unsqueeze(1),
            log_density=log_density + decision.log_said.unsqueeze(-1),
        )
        after = run.tick(revealed)
        return Stepped(after.x_t, after.log_density, after.step, sum_error(log_probs, moment.masked))

    def _fastest(self, given: tuple[Tensor, ...]) -> Callable[..., Stepped]:
        """The step recorded with a kernel of our own, or recorded, or as it is: the first that works and agrees."""
        expected = self._plain(*given)
        failures = []
        for how, with_kernel in (("kernel", in_one_kernel()), ("recorded", nullcontext())):
            try:
                with with_kernel:
                    recorded = Recorded(self._plain, *given)
                found = recorded(*given)
            except Exception as error:
                if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                    raise
                failures.append(f"step, {how}: {type(error).__name__}: {error}")
                continue
            wrong = _disagreement(f"step, {how}", found, expected)
            if wrong is None:
                self.failure, self.how = "; ".join(failures) or None, how
                return recorded
            failures.append(wrong)
        self.failure = "; ".join(failures)
        return self._plain


def _disagreement(name: str, found: Stepped, expected: Stepped) -> str | None:
    """In words; of the errors, which are mere rounding themselves, only the size is compared."""
    return disagreement(name, found[:-1], expected[:-1], expected.log_density.dtype) or disagreement(
        name, found.error.exp(), expected.error.exp(), expected.error.dtype
    )
