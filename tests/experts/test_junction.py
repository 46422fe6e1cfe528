"""A junction in plain operations; the fused kernel against it where there is a GPU."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from factordiff.experts.junction import join
from factordiff.streams import Purpose, uniform


def drawn(items: int, tokens: int, width: int, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """Stream, branch, the six vectors of a modulation, and two gradients."""
    shapes = [(items, tokens, width)] * 2 + [(items, 6, width)] + [(items, tokens, width)] * 2
    return [
        (uniform(0, Purpose.INIT, key, torch.arange(torch.Size(shape).numel())) * 2.0 - 1.0)
        .reshape(shape)
        .to(device, dtype)
        for key, shape in enumerate(shapes)
    ]


def results(parts: list[torch.Tensor], dtype: torch.dtype, fused: bool) -> list[torch.Tensor]:
    x, branch, modulation = (part.detach().to(dtype, copy=True).requires_grad_() for part in parts[:3])
    y, normed = join(x, branch, modulation[:, 2], modulation[:, 3], modulation[:, 4], fused)
    ((y * parts[3]).sum() + (normed * parts[4]).sum()).backward()
    gradients = [part.grad for part in (x, branch, modulation)]
    assert all(gradient is not None for gradient in gradients)
    return [y.detach(), normed.detach(), *gradients]  # type: ignore[list-item]


def test_in_plain_operations() -> None:
    x, branch, modulation, *_ = drawn(2, 5, 12, torch.float64, "cpu")
    y, normed = join(x, branch, modulation[:, 2], modulation[:, 3], modulation[:, 4])
    for item in range(2):
        for token in range(5):
            expected = x[item, token] + modulation[item, 2] * branch[item, token]
            assert torch.allclose(y[item, token], expected)
            hat = (expected - expected.mean()) / (expected.var(unbiased=False) + 1e-5).sqrt()
            assert torch.allclose(normed[item, token], (1 + modulation[item, 3]) * hat + modulation[item, 4])
    assert torch.allclose(F.layer_norm(y, (12,)) * (1 + modulation[:, 3:4]) + modulation[:, 4:5], normed)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize(("items", "tokens", "width"), [(3, 37, 144), (1, 100, 144), (5, 16, 64)])
def test_the_kernel_computes_the_same(
    dtype: torch.dtype, tolerance: float, items: int, tokens: int, width: int
) -> None:
    parts = drawn(items, tokens, width, dtype, "cuda")
    for found, expected in zip(
        results(parts, dtype, True), results([p.double() for p in parts], torch.float64, False), strict=True
    ):
        assert float((found.double() - expected).norm() / expected.norm()) < tolerance
