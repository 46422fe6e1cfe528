"""Wrong weights, wrong resampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from factordiff.composition import product, superdiff
from factordiff.composition.composition import Composed
from factordiff.composition.correctors import Corrected
from factordiff.sampling import particles, samples, step
from factordiff.state import SamplerState
from factordiff.streams import uniform
from factordiff.toy import law
from tests.mutants.registry import Patch, after, mutant


def reweighted(patch: Patch, gain: Callable[..., Tensor]) -> None:
    """Replace the log-weight that enumeration gives a step by `gain(log_probs, composed, tokens, cells, beta)`."""
    drawn: list[tuple[Any, ...]] = []
    original = step.log_drawn

    def remembering(*given: Any) -> Tensor:
        drawn.append((*given[:4], original(*given)))
        return drawn[-1][-1]

    def target(said: Tensor, beta: Tensor) -> Tensor:
        *given, log_r = drawn[-1]
        return gain(*given, beta) + log_r

    patch.setattr(step, "log_drawn", remembering)
    patch.setattr(step, "log_target", target)


@mutant(
    "properties.test_correctors:test_05_feynman_kac_weights_are_exact_and_the_product_alone_is_not",
    (1.0, 1.0),
)
def weights_at_the_revealed_cell_only(patch: Patch) -> None:
    """What public code does: g dt at the revealed cell, in place of log S."""

    def gain(log_probs: Tensor, composed: Composed, tokens: Tensor, cells: Tensor, beta: Tensor) -> Tensor:
        assert composed.log_z is not None
        hidden = (log_probs.amax(-1) < 0).all(0).sum(-1, keepdim=True)
        t, B = hidden / cells.shape[1], float(beta.sum())
        g = B * (1 - t) ** (B - 1) * t**-B * composed.log_z.exp() - B / t
        return torch.where(cells, g / cells.shape[1], 0.0).sum(-1)

    reweighted(patch, gain)


@mutant(
    "properties.test_correctors:test_05_feynman_kac_weights_are_exact_and_the_product_alone_is_not",
    (0.5, 0.5),
)
def log_S_at_any_temperature(patch: Patch) -> None:
    def gain(log_probs: Tensor, composed: Composed, tokens: Tensor, cells: Tensor, beta: Tensor) -> Tensor:
        assert composed.log_z is not None
        return torch.where(cells, composed.log_z, 0.0).sum(-1)

    reweighted(patch, gain)


@mutant("sampling.test_sampler:test_the_loop_is_its_slow_twin", "fkc", "confidence", 0.6)
def weights_of_the_loop_ignore_the_temperature(patch: Patch) -> None:
    original = step.log_drawn
    patch.setattr(step, "log_drawn", lambda *given: original(*given[:4], 1.0))


@mutant(
    "properties.test_correctors:test_05_feynman_kac_weights_are_exact_and_the_product_alone_is_not",
    (1.0, 1.0),
)
def the_product_alone_called_exact(patch: Patch) -> None:
    original = law.Law.distribution
    patch.setattr(law.Law, "distribution", lambda self, weighted=False: original(self))


@mutant("properties.test_correctors:test_05_exponents_are_one_over_the_experts_unless_given")
def exponents_of_one_by_default(patch: Patch) -> None:
    after(
        patch, Corrected, "target", lambda beta, self, experts: beta if self.beta else torch.ones_like(beta)
    )


@mutant("properties.test_correctors:test_06_rne_is_exact_under_any_proposal", superdiff.SuperDiff())
def a_mixture_weighted_as_if_it_were_the_product(patch: Patch) -> None:
    def gain(log_probs: Tensor, composed: Composed, tokens: Tensor, cells: Tensor, beta: Tensor) -> Tensor:
        log_z = product.product(log_probs, beta).log_z
        assert log_z is not None
        return torch.where(cells, log_z, 0.0).sum(-1)

    reweighted(patch, gain)


@mutant("properties.test_correctors:test_07_the_feynman_kac_generator_moves_the_target", (1.0, 1.0))
def mass_of_the_normalised_product(patch: Patch) -> None:
    from tests.properties import test_correctors

    after(patch, test_correctors, "product", lambda c, *given: replace(c, log_z=torch.zeros_like(c.log_z)))


@mutant("properties.test_particles:test_08_the_drawn_particle_nears_the_target_as_particles_grow")
def particles_without_weights(patch: Patch) -> None:
    patch.setattr(Corrected, "target", lambda self, experts: None)


@mutant("properties.test_particles:test_08_the_drawn_particle_nears_the_target_as_particles_grow")
def particles_that_all_draw_the_same(patch: Patch) -> None:
    original = SamplerState.begin

    def alike(*given: Any, **named: Any) -> SamplerState:
        state = original(*given, **named)
        return replace(state, draws=replace(state.draws, particle=torch.zeros_like(state.draws.particle)))

    patch.setattr(SamplerState, "begin", alike)


def resampled(patch: Patch, change: Callable[[Any, Any], Any]) -> None:
    original = step.resampled

    def altered(state: SamplerState, share: float) -> Any:
        result, *told = original(state, share)
        return change(result, state), *told

    patch.setattr(step, "resampled", altered)


@mutant("sampling.test_sampler:test_the_loop_is_its_slow_twin", "fkc", "confidence", 1.0)
def resampling_forgets_the_densities(patch: Patch) -> None:
    resampled(patch, lambda result, before: replace(result, log_density=before.log_density))


@mutant("sampling.test_sampler:test_the_loop_is_its_slow_twin", "rne", "confidence", 1.0)
def resampling_keeps_the_weights(patch: Patch) -> None:
    resampled(patch, lambda result, before: replace(result, log_w=before.log_w))


@mutant("properties.test_particles:test_08_the_drawn_particle_nears_the_target_as_particles_grow")
def weights_forgotten_after_every_step(patch: Patch) -> None:
    resampled(patch, lambda result, before: replace(result, log_w=torch.zeros_like(result.log_w)))


@mutant("properties.test_order:test_14_systematic_resampling")
def cumulative_weights_that_end_short_of_one(patch: Patch) -> None:
    def short(weights: Tensor, offset: Tensor) -> Tensor:
        count = weights.shape[-1]
        positions = (torch.arange(count) + offset[:, None]) / count
        return torch.searchsorted(weights.cumsum(-1), positions, right=True)

    patch.setattr(particles, "systematic", short)


@mutant("properties.test_order:test_14_systematic_resampling")
def a_uniform_for_every_particle(patch: Patch) -> None:
    def multinomial(weights: Tensor, offset: Tensor) -> Tensor:
        count = weights.shape[-1]
        spread = uniform(1, torch.arange(len(weights))[:, None], torch.arange(count))
        return torch.searchsorted(weights.cumsum(-1), spread).clamp(max=count - 1).sort(-1).values

    patch.setattr(particles, "systematic", multinomial)


@mutant("sampling.test_sampler:test_votes_and_first_particles_are_selected")
def votes_tie_to_the_lowest_value(patch: Patch) -> None:
    patch.setattr(
        samples,
        "majority_vote",
        lambda runs, values: torch.nn.functional.one_hot(runs, values).sum(0).argmax(-1),
    )
