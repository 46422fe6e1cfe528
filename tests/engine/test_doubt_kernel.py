"""The log-doubt's kernel against the formula, in Triton's interpreter, where Triton is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from factordiff.composition.confidence import Faster, computed_by, log_doubt
from factordiff.engine import doubt_kernel

CHECK = """
import torch
from factordiff.engine import doubt_kernel
from factordiff.composition.confidence import log_doubt
from factordiff.streams import uniform

for dtype in (torch.float32, torch.float64):
    for values in (2, 3, 10, 16, 31, 128):
        index = torch.arange(2 * 7 * 13 * values).view(2, 7, 13, values)
        spread = torch.tensor([4.0, 90.0], dtype=dtype)[:, None, None, None]
        given = torch.log_softmax(uniform(5, index).to(dtype) * spread, -1)
        given[0, 0, :4] = -torch.inf
        given[0, 0, 0, 1] = 0.0  # a point mass
        given[0, 0, 1, :2] = torch.tensor(0.5, dtype=dtype).log()  # a tie
        given[0, 0, 3] = torch.nan  # and the third has no value at all
        found, expected = doubt_kernel.in_kernel(given), log_doubt(given)
        assert found.dtype == torch.float64
        assert found[0, 0, 0] == -torch.inf
        assert found[0, 0, 1] == 0.0
        assert found[0, 0, 2:4].isnan().all()
        assert torch.equal(found.isnan(), expected.isnan())
        assert torch.equal(found.isinf(), expected.isinf())
        apart = (found - expected).where(found.isfinite(), 0.0).abs()
        assert apart.max() < 2e-14, (dtype, values, apart.max())
        turned = doubt_kernel.in_kernel(given.flip(-1))  # the same bits in any order
        assert torch.equal(turned.nan_to_num(1.0), found.nan_to_num(1.0))
        assert doubt_kernel.in_kernel(given[:0]).shape == (0, 7, 13)
print("agreed")
"""


@pytest.mark.gpu
def test_the_kernel_agrees_with_the_formula() -> None:
    interpreted = os.environ | {"TRITON_INTERPRET": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", CHECK], capture_output=True, text=True, env=interpreted, check=False
    )
    assert ended.stdout.strip() == "agreed", ended.stderr


def test_without_a_gpu_the_formula_is_used() -> None:
    given = torch.log_softmax(torch.arange(24.0).view(2, 3, 4).sin(), -1)
    assert not doubt_kernel.possible(given)
    expected = log_doubt(given)
    with computed_by(Faster(doubt_kernel.log_doubt, lambda _: None)):
        assert torch.equal(log_doubt(given), expected)
    with computed_by(
        Faster(lambda log_p: log_p.sum(-1), lambda _: None)
    ):  # whatever is put in its place is asked
        assert torch.equal(log_doubt(given), given.sum(-1))
