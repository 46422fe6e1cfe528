"""Attention in plain operations against its definition; the fused kernel against it where there is a GPU."""

from __future__ import annotations

import pytest
import torch

from factordiff.networks.attention import attention
from factordiff.networks.transformer import rotations
from factordiff.streams import Purpose, uniform


def drawn(shape: tuple[int, ...], key: int, dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
    numbers = uniform(0, Purpose.INIT, key, torch.arange(torch.Size(shape).numel()))
    return (numbers * 4.0 - 2.0).reshape(shape).to(device, dtype)


def test_by_its_definition() -> None:
    heads, size, tokens, extras = 2, 3, 5, 4
    qkv = drawn((1, tokens, 3 * heads * size), 0, torch.float64)
    keys, values = (drawn((1, heads, extras, size), key, torch.float64) for key in (1, 2))
    found = attention(qkv, (keys, values), None, heads, 0.7)
    for token in range(tokens):
        for head in range(heads):
            query, key, value = (
                [qkv[0, other, (part * heads + head) * size :][:size] for other in range(tokens)]
                for part in range(3)
            )
            key, value = [*key, *keys[0, head]], [*value, *values[0, head]]
            scores = torch.stack([0.7 * (query[token] @ one) for one in key])
            expected = torch.softmax(scores, 0) @ torch.stack(value)
            assert torch.allclose(found[0, token, head * size :][:size], expected)


CASES = [(3, 100, 4, 40, 16, 36), (5, 100, 4, 40, 0, 0), (2, 25, 4, 40, 0, 36), (1, 16, 2, 16, 5, 0)]


def results(case: tuple[int, ...], dtype: torch.dtype, device: str, fused: bool) -> list[torch.Tensor]:
    batch, tokens, heads, size, extras, turning = case
    shapes = [(batch, tokens, 3 * heads * size)] + [(batch, heads, extras, size)] * 2
    # Numbers that bfloat16 holds exactly, so that only the arithmetic differs.
    qkv, keys, values = (
        drawn(shape, key, torch.bfloat16, device).to(dtype).requires_grad_()
        for key, shape in enumerate(shapes)
    )
    side = int(tokens**0.5)
    rotation = rotations(side, side, turning).to(device, torch.bfloat16).to(dtype) if turning else None
    out = attention(qkv, (keys, values) if extras else None, rotation, heads, 0.2, fused)
    out.backward(drawn(tuple(out.shape), 9, torch.bfloat16, device).to(dtype))
    gradients = [part.grad for part in ([qkv, keys, values] if extras else [qkv])]
    return [out.detach(), *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-3), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize("case", CASES)
def test_the_kernel_computes_the_same(case: tuple[int, ...], dtype: torch.dtype, tolerance: float) -> None:
    expected = results(case, torch.float64, "cuda", False)
    found = results(case, dtype, "cuda", True)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert float((one.double() - other).norm() / other.norm()) < tolerance
