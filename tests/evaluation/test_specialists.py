"""The specialists' questions against a loop that does what the definition says."""

from __future__ import annotations

import numpy as np
import torch

from factordiff.composition.single import Single
from factordiff.evaluation.benchmark import pose
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.sampler import sample

MASK = 3


def expert(seed: int) -> TabularExpert:
    joint = np.random.default_rng(seed).dirichlet(np.full(81, 0.4))
    return TabularExpert(torch.tensor(joint).view(3, 3, 3, 3))


def test_occupancy_decides_by_one_half_and_then_sees_the_truth():
    worlds = [expert(seed) for seed in range(3)]
    truths = torch.cartesian_prod(*[torch.arange(3)] * 4)
    for world in worlds:
        asked, condition, x_t, right = pose("occupancy", [world], None, truths)
        decided = sample(asked, Single(), x_t, condition).x_0
        assert torch.equal(right, (truths > 0).long())
        for truth, found in zip(truths, decided, strict=True):
            state, expected = torch.full((1, 4), MASK), [0] * 4
            while (state == MASK).any():
                p = world.log_probs(state)[0].exp()
                p_bg, p_fg = p[:, 0], p[:, 1:].sum(-1)
                surest = max(
                    (cell for cell in range(4) if state[0, cell] == MASK),
                    key=lambda cell: (float((p_fg - p_bg).abs()[cell]), -cell),
                )
                expected[surest] = int(p_bg[surest] <= 0.5)
                state[0, surest] = truth[surest]
            assert found.tolist() == expected


def test_color_starts_from_the_true_background_and_never_answers_background():
    truths = torch.cartesian_prod(*[torch.arange(3)] * 4)
    asked, condition, x_t, right = pose("color", [expert(7)], None, truths)
    assert torch.equal(x_t == MASK, truths > 0)
    answers = sample(asked, Single(), x_t, condition).x_0
    assert torch.equal(answers[truths == 0], truths[truths == 0])
    assert (answers[truths > 0] > 0).all()
    assert torch.equal(right, truths)
