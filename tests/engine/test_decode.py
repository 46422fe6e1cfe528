"""Every method by name, on tabular experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from factordiff.composition.method import Method, spec, specs
from factordiff.composition.vote import majority_vote
from factordiff.engine.decode import decode
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.sampler import sample


def expert(seed: int) -> TabularExpert:
    joint = 0.98 * np.random.default_rng(seed).dirichlet(np.full(81, 0.25)) + 0.02 / 81
    return TabularExpert(torch.tensor(joint).view(3, 3, 3, 3))


METHODS = list(specs())
EXPERTS = [expert(1), expert(2)]


def method(
    name: str, objectives: list[str], partition: torch.Tensor | None = None, **options: object
) -> Method:
    names = [f"{number}" for number in range(len(objectives))]
    return spec(name).method(spec(name).check(options, names), objectives, partition)


START = torch.full((7, 4), 3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fills_the_grid_and_counts_its_passes(name):
    experts = EXPERTS[:1] if name == "single" else EXPERTS
    how = method(
        name,
        ["color", "occupancy"][: len(experts)],
        **({"particles": 4} if name in ("fkc", "rne") else {}),
    )
    answers = decode(how, experts, START, None, seed=5)
    assert answers.x_0.shape == (7, 4)
    assert int(answers.x_0.max()) < 3
    per_step = {"single": 1, "fkc": 8, "rne": 8, "vote": 6, "hex": 10, "tie": 4}.get(name, 2)
    assert answers.nominal_passes.tolist() == [4 * per_step] * 7


def test_only_drawing_methods_depend_on_the_seed():
    for name in [name for name in METHODS if name != "single"]:
        how = method(name, ["color", "occupancy"])
        start = torch.full((64, 4), 3)
        one, two = (decode(how, EXPERTS, start, None, seed=seed).x_0 for seed in (0, 1))
        assert torch.equal(one, two) == (name not in ("drawn-expert", "fkc", "rne", "vote"))


def test_a_vote_across_experts_pools_independent_runs():
    how = method("vote", ["full", "full"], runs=3)
    answers = decode(how, EXPERTS, START, None, seed=5)
    assert answers.particles.shape == (7, 6, 4)
    assert torch.equal(answers.x_0, majority_vote(answers.particles.transpose(0, 1), 3))
    twice = decode(how, [EXPERTS[0], EXPERTS[0]], torch.full((64, 4), 3), None, seed=5).particles
    assert not torch.equal(twice[:, :3], twice[:, 3:])  # the same expert twice does not repeat its draws


def test_routing_temperatures_and_factors_reach_the_composition():
    how = method("routing", ["full", "full"], torch.zeros(4, dtype=torch.int64), temperatures=[1.0, 0.25])
    assert how.composition.temperatures == (1.0, 0.25)
    routed = sample(EXPERTS, how.composition, START, trace=True).trace
    assert all(len({z for z in cells if z >= 0}) == 1 for step in routed.steps for [cells] in step.routing)


def test_weights_and_exponents_reach_the_composition():
    assert method("mixture", ["full"] * 2, weights=[0.2, 0.8]).composition.weights == (0.2, 0.8)
    assert method("product", ["full"] * 2, beta=[0.1, 1.0]).composition.beta == (0.1, 1.0)


def test_unknown_and_misused_methods_are_refused():
    with pytest.raises(Unavailable, match="method: expected one of drawn-expert, evidence, fkc"):
        method("magic", ["full"])
    with pytest.raises(InvalidInput, match="'single' takes one expert"):
        method("single", ["full", "full"])
    with pytest.raises(InvalidInput, match="'views' takes two experts"):
        method("views", ["full", "full"])


@pytest.mark.parametrize("name", ["fkc", "rne"])
def test_a_vote_among_weighted_particles_is_among_those_of_all_experts_together(name):
    """The method `vote` runs each expert alone; the selection `vote` of another method does not."""
    how = method(name, ["full", "full"], selection="vote", particles=6, beta=[1.0, 0.5])
    answers = decode(how, EXPERTS, START, None, seed=5)
    assert answers.particles.shape == (7, 6, 4)
    assert torch.equal(answers.x_0, majority_vote(answers.particles.transpose(0, 1), 3))
    drawn = decode(replace(how, selection="draw"), EXPERTS, START, None, seed=5)
    assert torch.equal(answers.particles, drawn.particles)
