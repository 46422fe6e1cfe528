"""Property 8: few particles are nearly right, and more are righter."""

from __future__ import annotations

import math
from itertools import pairwise
from itertools import product as tuples

import numpy as np
import pytest
import torch

from factordiff.composition.correctors import Corrected, feynman_kac, rne
from factordiff.composition.product import Product
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling import particles
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from tests.toy import (
    CELLS,
    EXPERTS,
    MASK,
    P_1,
    P_2,
    empty,
    law_of,
    normalised,
)

State = tuple[int, ...]


def drawn_particle(
    composition: Corrected, count: int, runs: int, seed: int = 8
) -> tuple[float, float, float]:
    """(low, high, standard error) of the TV between the law of the one drawn particle and the target.

    Every particle counts with its chance of being drawn. The plain estimate is biased upwards by noise; signs from
    one half of the runs and values from the other are biased downwards: the truth lies between.
    """
    target = normalised(P_1 * P_2).ravel()
    shares = []
    for part in range(0, runs, 20_000):
        size = min(20_000, runs - part)
        drawn = sample(
            EXPERTS, composition, empty(size), reveal=ByConfidence(CELLS), temperature=1.0, particles=count,
            seed=seed, items=torch.arange(part, part + size),
        )  # fmt: skip
        index = np.ravel_multi_index(tuple(drawn.particles.permute(2, 0, 1).numpy()), (MASK,) * CELLS)
        share = torch.zeros(size, MASK**CELLS, dtype=torch.float64)
        shares.append(
            share.scatter_add_(1, torch.from_numpy(index), particles.normalised(drawn.log_w)).numpy()
        )
    share = np.concatenate(shares)
    gap, one, two = (part.mean(0) - target for part in (share, share[::2], share[1::2]))
    low = (np.sign(one) @ two + np.sign(two) @ one) / 4
    return float(low), float(abs(gap).sum() / 2), float((share @ np.sign(gap) / 2).std() / math.sqrt(runs))


def assert_smc(runs: int) -> None:
    for composition, expected in (
        (feynman_kac((1.0, 1.0)), {1: 0.254, 2: 0.166, 8: 0.057}),
        (rne((1.0, 1.0)), {1: 0.485, 2: 0.319, 8: 0.092}),
    ):
        for count, value in expected.items():
            low, high, error = drawn_particle(composition, count, runs)
            assert low - 3 * error - 0.003 < value < high + 3 * error + 0.003
            assert high - low < 0.02  # the bracket says something


def test_08_the_drawn_particle_nears_the_target_as_particles_grow() -> None:
    assert_smc(10_000)


@pytest.mark.slow
def test_08_the_drawn_particle_with_full_counts() -> None:
    assert_smc(200_000)


def enumerated_smc(
    said: list[dict[State, np.ndarray]], beta: list[float], proposal: str, count: int, share: float
) -> np.ndarray:
    """The law of the particle drawn at the end, over two cells of two values: every draw, every resampling offset."""
    law = np.zeros((2, 2))

    def go(states: list[State], log_w: np.ndarray, step: int, chance: float) -> None:
        if step == 2:
            weights = np.exp(log_w) / np.exp(log_w).sum()
            for state, weight in zip(states, weights, strict=True):
                law[state] += chance * weight
            return
        options = []
        for state in states:
            p = np.stack([expert[state] for expert in said])  # expert, cell, value
            r = p.mean(0) if proposal == "mixture" else (p ** np.array(beta)[:, None, None]).prod(0)
            r = r / r.sum(-1, keepdims=True)
            margins = np.where(np.array(state) == 2, abs(r[:, 0] - r[:, 1]), -1.0)
            cell = int(margins.argmax())
            gains = np.array(beta) @ np.log(p[:, cell]) - np.log(r[cell])
            options.append([((*state[:cell], v, *state[cell + 1 :]), r[cell, v], gains[v]) for v in range(2)])
        for drawn in tuples(*options):
            found, heavy = [one[0] for one in drawn], log_w + [one[2] for one in drawn]
            here = chance * math.prod(one[1] for one in drawn)
            weights = np.exp(heavy) / np.exp(heavy).sum()
            if 1 / (weights**2).sum() >= share * count:
                go(found, heavy, step + 1, here)
                continue
            ends = weights.cumsum()
            jumps = {0.0, 1.0} | {x for end in ends for k in range(count) if 0 < (x := count * end - k) < 1}
            for low, high in pairwise(sorted(jumps)):  # between two jumps the offset gives the same ancestors
                at = [(k + (low + high) / 2) / count for k in range(count)]
                parents = [found[min(int((ends <= x).sum()), count - 1)] for x in at]
                go(parents, np.zeros(count), step + 1, here * (high - low))

    go([(2, 2)] * count, np.zeros(count), 0, 1.0)
    return law


@pytest.mark.parametrize("proposal", ["product", "mixture"])
@pytest.mark.parametrize("share", [0.0, 0.8, 1.0])
def test_08_the_law_of_three_particles_is_their_enumeration(proposal: str, share: float) -> None:
    """Three are no sample of the target, but of a law that resampling has a part in, by 2 to 4 % of the mass here."""
    random, beta = np.random.default_rng(4), [3.0, 0.5]
    tables = [TabularExpert(random.dirichlet(np.full(4, 0.6)).reshape(2, 2)) for _ in range(2)]
    states = list(tuples(range(3), repeat=2))
    said = [
        {state: table.log_probs(torch.tensor([state]))[0].exp().numpy() for state in states}
        for table in tables
    ]
    law, runs = enumerated_smc(said, beta, proposal, 3, share), 40_000
    drawn = sample(
        tables, feynman_kac(beta) if proposal == "product" else rne(beta), torch.full((runs, 2), 2),
        reveal=ByConfidence(2), temperature=1.0, particles=3, resampling=share,
    )  # fmt: skip
    found = np.bincount((drawn.x_0 * torch.tensor([2, 1])).sum(-1), minlength=4) / runs
    error = np.sqrt(law * (1 - law) / runs).ravel()
    assert law.sum() == pytest.approx(1)
    assert (abs(found - law.ravel()) < 4 * error + 1e-9).all()


def test_08_the_highest_target_seeks_the_mode() -> None:
    target = P_1 * P_2
    mode = torch.tensor(np.unravel_index(target.argmax(), target.shape))
    once = float(law_of(Product())[tuple(mode)])
    runs = 10_000
    for count in (1, 2, 8):
        drawn = sample(
            EXPERTS, feynman_kac((1.0, 1.0)), empty(runs), reveal=ByConfidence(CELLS), temperature=1.0,
            particles=count, selection="highest-target", seed=88,
        )  # fmt: skip
        found = float((drawn.x_0 == mode).all(-1).double().mean())
        independent = (
            1 - (1 - once) ** count
        )  # .258, .449, .908: what particles find that are never resampled
        error = math.sqrt(independent * (1 - independent) / runs)
        assert found < independent + 4 * error
        # two particles are never resampled (their effective size is at least one); eight now and then are
        assert found > independent - 4 * error - (0.02 if count == 8 else 0)
