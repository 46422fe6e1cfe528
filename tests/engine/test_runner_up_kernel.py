"""The runner-up's kernel against the formula, in Triton's interpreter, where Triton is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from factordiff.composition import confidence
from factordiff.composition.confidence import Faster, computed_by, error_probability, log_doubt
from factordiff.engine import runner_up_kernel
from factordiff.types import LARGE

CHECK = """
import torch
from factordiff.composition.confidence import _against_runner_up
from factordiff.engine import runner_up_kernel
from factordiff.streams import uniform

runner_up_kernel.BLOCK = 256  # several blocks of few values
for values in (1030, 2048, 5000):
    index = torch.arange(9 * values).view(9, values)
    spread = torch.tensor([4.0, 90.0, 4.0, 30.0, 9.0, 9.0, 9.0, 9.0, 9.0])[:, None]
    given = torch.log_softmax(uniform(5, index).float() * spread, -1)
    given[0] = -torch.inf
    given[0, 700] = 0.0  # a point mass
    given[1] = -100.0
    given[1, [3, 300]] = -0.7  # a tie in two blocks
    given[2, 5] = torch.nan
    given[3] = -torch.inf  # no value at all
    given[4, -1] = 1.0  # the last value wins
    given[5, [300, 301]] = torch.tensor([2.0, 1.5])  # both in one block
    given[6, [44, 300]] = torch.tensor([2.0, 1.5])  # both in one lane
    found, expected = runner_up_kernel.in_kernel(given), _against_runner_up(given)
    good = [0, 1, 4, 5, 6, 7, 8]
    for mine, true in zip(found[:2], expected[:2]):
        assert mine.dtype == torch.float64
        assert torch.equal(mine[good], true[good])
    assert found[0][2].isnan()
    assert found[0][3] == -torch.inf
    apart = (found[2] - expected[2])[good].abs() / expected[2][good].clamp(min=1.0)
    assert apart.max() < 1e-6, (values, apart)
    turned = runner_up_kernel.in_kernel(given.flip(-1))  # the same bits in any order
    for mine, other in zip(found, turned):
        assert torch.equal(mine[good], other[good])
assert runner_up_kernel.in_kernel(given[:0])[0].shape == (0,)
print("agreed")
"""


@pytest.mark.gpu
def test_the_kernel_agrees_with_the_formula() -> None:
    interpreted = os.environ | {"TRITON_INTERPRET": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", CHECK], capture_output=True, text=True, env=interpreted, check=False
    )
    assert ended.stdout.strip() == "agreed", ended.stderr


@pytest.mark.gpu
def test_the_kernel_on_the_gpu_itself() -> None:
    given = torch.log_softmax(9.0 * torch.randn(64, 126_464, device="cuda"), -1)
    wide = given.view(2, 4, 8, -1)
    found = runner_up_kernel.against_runner_up(given)
    assert found is not None
    expected = confidence._against_runner_up(given)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])
    assert ((found[2] - expected[2]) / expected[2]).abs().max() < 1e-6
    with computed_by(Faster(lambda _: None, runner_up_kernel.against_runner_up)):
        by_kernel = log_doubt(wide)
    assert (by_kernel - log_doubt(wide)).abs().max() < 1e-6


def test_large_vocabularies_ask_what_is_put_in_its_place() -> None:
    given = torch.log_softmax(torch.randn(1, 3, LARGE + 1, generator=torch.Generator().manual_seed(1)), -1)
    assert not runner_up_kernel.possible(given)
    expected, wrong = log_doubt(given), error_probability(given)
    with computed_by(Faster(lambda _: None, runner_up_kernel.against_runner_up)):
        assert torch.equal(log_doubt(given), expected)
        assert torch.equal(error_probability(given), wrong)
    nothing = torch.zeros(3, dtype=torch.float64)
    with computed_by(Faster(lambda _: None, lambda log_p: (nothing, nothing, nothing))):
        assert torch.equal(log_doubt(given), nothing[None])
        assert torch.equal(error_probability(given), nothing[None])
