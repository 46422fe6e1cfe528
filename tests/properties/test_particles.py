"""Property 8: few particles are nearly right, and more are righter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from factordiff.composition.correctors import Corrected, feynman_kac, rne
from factordiff.composition.product import Product
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
