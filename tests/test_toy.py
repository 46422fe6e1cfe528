"""The toy worlds are the documented ones, and what is said about them is so."""

from __future__ import annotations

import math

import pytest
import torch

from factordiff.composition.correctors import Corrected, feynman_kac
from factordiff.composition.single import Single
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.toy.exactness import Measured, measurements
from factordiff.toy.law import total_variation
from factordiff.toy.laws import drawn_particle_law, law_of_vote, number, tabulated
from factordiff.toy.painting import STEPS, IndependentCells, methods, paint, painters, picture
from factordiff.toy.world import VALUES, normalised, random_joint, two_halves, two_opinions, two_views


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], Measured]:
    return {(row.world, row.method): row for row in measurements(draws=64)}


def test_the_two_joints_are_the_documented_ones() -> None:
    p_1, p_2 = random_joint(1), random_joint(2)
    assert total_variation(p_1, p_2) == pytest.approx(0.826, abs=5e-4)
    assert float(-(p_1 * p_1.log()).sum()) == pytest.approx(3.061835, abs=5e-7)


@pytest.mark.parametrize(
    ("method", "distance"),
    [
        ("product", 0.254),
        ("geometric-mean", 0.151),
        ("... cell by cell instead", 0.120),
        ("routing (pixel)", 0.43),
    ],
)
def test_distances_are_the_documented_ones(
    measured: dict[tuple[str, str], Measured], method: str, distance: float
) -> None:
    assert measured["two opinions", method].distance == pytest.approx(distance, abs=1e-3)


def test_exactly_these_are_exact(measured: dict[tuple[str, str], Measured]) -> None:
    assert {key for key, row in measured.items() if row.exact} == {
        ("two opinions", "single"),
        ("two opinions", "superdiff"),
        ("two opinions", "superdiff, two cells a step"),
        ("two opinions", "fkc, weighted law"),
        ("two opinions", "rne, weighted law"),
        ("two halves", "product"),
        ("two halves", "routing (whole)"),
        ("two halves", "routing (pixel)"),
        ("two halves, wrongly sure", "factor weights, told"),
        ("two views", "views"),
    }


def test_only_drawn_rows_have_noise(measured: dict[tuple[str, str], Measured]) -> None:
    for (_, method), row in measured.items():
        assert (row.noise is not None) == (", one of" in method)


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(InvalidInput, match="draws: expected at least 32"):
        next(measurements(draws=31))


def test_more_draws_than_memory_holds_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"draws: 1,000,000,000,000 particles at once need about .* GiB"):
        next(measurements(draws=10**12))


def test_the_noise_is_what_a_perfect_sampler_shows() -> None:
    """One expert corrected towards itself is perfect: its distance is chance, and chance alone."""
    law, noise = drawn_particle_law(
        two_opinions(), Corrected(Single(0), (1.0, 0.0)), particles=1, runs=2000, seed=3
    )
    assert float(law.sum()) == pytest.approx(1.0)
    # The distance is a sum of 81 nearly independent terms of about equal size: its spread is about a tenth.
    assert total_variation(law, random_joint(1)) == pytest.approx(noise, rel=0.35)


def test_more_particles_come_closer() -> None:
    both = normalised(random_joint(1) * random_joint(2))
    distances = []
    for particles in (1, 8):
        law, noise = drawn_particle_law(
            two_opinions(), feynman_kac((1.0, 1.0)), particles, 16_000 // particles, seed=0
        )
        distances.append(total_variation(law, both))
        assert noise < 0.025
    assert distances[0] == pytest.approx(0.254, abs=0.02)
    assert distances[1] == pytest.approx(0.057, abs=0.03)


def test_vote_of_one_is_the_law_itself() -> None:
    assert total_variation(law_of_vote(random_joint(1), runs=1), random_joint(1)) < 1e-15


def test_vote_makes_the_best_grid_rarer_here() -> None:
    """Each cell is voted on by itself, so the winner may be put together from several runs."""
    voted = law_of_vote(random_joint(1), runs=3)
    assert float(voted.sum()) == pytest.approx(1.0)
    best = int(random_joint(1).argmax())
    assert float(random_joint(1).flatten()[best]) == pytest.approx(0.177, abs=1e-3)
    assert float(voted.flatten()[best]) == pytest.approx(0.134, abs=1e-3)


def test_outcomes_are_numbered_in_reading_order() -> None:
    outcomes = torch.cartesian_prod(*[torch.arange(VALUES)] * 4)
    assert number(outcomes).tolist() == list(range(81))
    mass = torch.arange(81).double()
    assert torch.equal(tabulated(outcomes, mass).flatten(), mass)


def test_each_half_knows_its_own_half_only() -> None:
    world = two_halves()
    blank = torch.full((1, 4), VALUES)
    left, right = (expert.log_probs(blank, None).exp()[0] for expert in world.experts)
    uniform = torch.full((2, VALUES), 1 / VALUES, dtype=torch.float64)
    assert torch.allclose(left[2:], uniform)
    assert torch.allclose(right[:2], uniform)
    marginal = world.truth.sum((1, 2, 3))
    assert torch.allclose(left[0], marginal)


def test_each_view_is_right_about_its_own_question() -> None:
    presence, kind = two_views().experts
    truth = two_opinions()[0]
    x_t = torch.tensor([[3, 3, 1, 3], [3, 0, 3, 2]])
    said, told, true = (expert.log_probs(x_t, None).exp() for expert in (presence, kind, truth))
    masked = x_t == 3
    assert torch.allclose(said.sum(-1)[masked], torch.ones(5, dtype=torch.float64))
    assert torch.allclose(told.sum(-1), torch.ones(2, 4, dtype=torch.float64))
    assert torch.allclose(said[..., 0][masked], true[..., 0][masked])
    given = true[..., 1:] / true[..., 1:].sum(-1, keepdim=True)
    assert torch.allclose(told[..., 1:][masked], given[masked])
    assert float(told[..., 0].max()) == 0.0


def test_independent_cells_are_an_expert_in_the_protocols_sense() -> None:
    expert = IndependentCells(torch.zeros(6, 5))
    assert isinstance(expert, Expert)
    said = expert.log_probs(torch.full((3, 6), 5), expert.encode(None))
    assert torch.allclose(said, torch.full((3, 6, 5), -math.log(5)))


def test_routing_paints_what_its_probabilities_say() -> None:
    """Cells are independent, so the expected count is the sum of the surer painter's chances."""
    painted = paint("routing", draws=200)
    chances = torch.stack([painter.log_table.exp() for painter in painters()])
    surer = chances.max(-1).values.argmax(0)
    right = chances[surer, torch.arange(64), picture()]
    error = float((right * (1 - right)).sum().sqrt()) / math.sqrt(200)
    assert abs(painted.right - float(right.sum())) < 4 * error
    assert int(painted.samples.nominal_passes[0]) == 2 * STEPS


def test_routing_paints_more_of_it_right_than_anybody_else() -> None:
    right = {method: paint(method, draws=50).right for method in methods()}
    assert max(right, key=lambda method: right[method]) == "routing"


def test_the_first_draw_is_the_same_alone() -> None:
    assert torch.equal(paint("routing", draws=1).x_0, paint("routing", draws=20).x_0)
