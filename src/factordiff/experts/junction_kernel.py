"""The Triton kernels of a junction; usable where Triton and a GPU are, importable everywhere."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

triton: Any = import_module("triton") if find_spec("triton") else None
tl: Any = import_module("triton.language") if triton else None
jit: Any = triton.jit if triton else (lambda function: function)

ROWS_FORWARD, ROWS_BACKWARD = 16, 16


@jit
def _forward(  # type: ignore[no-untyped-def]
    x, branch, gate, gamma, beta, y, normed, stride_gate, stride_gamma, stride_beta,
    tokens: tl.constexpr, width: tl.constexpr, epsilon: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    item = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = columns < width
    place = (item * tokens + rows)[:, None] * width + columns[None, :]
    valid = (rows < tokens)[:, None] & inside[None, :]
    alpha = tl.load(gate + item * stride_gate + columns, inside, 0.0).to(tl.float32)
    scale = 1.0 + tl.load(gamma + item * stride_gamma + columns, inside, 0.0).to(tl.float32)
    shift = tl.load(beta + item * stride_beta + columns, inside, 0.0).to(tl.float32)
    total = tl.load(x + place, valid, 0.0).to(tl.float32)
    total += alpha[None, :] * tl.load(branch + place, valid, 0.0).to(tl.float32)
    rounded = total.to(y.dtype.element_ty)  # the norm is of what is stored, as in plain operations
    tl.store(y + place, rounded, valid)
    total = rounded.to(tl.float32)
    mean = tl.sum(total, 1) / width
    centred = tl.where(valid, total - mean[:, None], 0.0)
    inverse = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)
    result = centred * inverse[:, None] * scale[None, :] + shift[None, :]
    tl.store(normed + place, result.to(normed.dtype.element_ty), valid)


@jit
def _backward(  # type: ignore[no-untyped-def]
    grad_y, grad_normed, y, branch, gate, gamma, grad_x, grad_branch, grad_gate, grad_gamma, grad_beta,
    stride_gate, stride_gamma,
    tokens: tl.constexpr, width: tl.constexpr, epsilon: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    item = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, COLUMNS)
    inside = columns < width
    alpha = tl.load(gate + item * stride_gate + columns, inside, 0.0).to(tl.float32)
    scale = 1.0 + tl.load(gamma + item * stride_gamma + columns, inside, 0.0).to(tl.float32)
    sum_gate = tl.zeros([COLUMNS], tl.float32)
    sum_gamma = tl.zeros([COLUMNS], tl.float32)
    sum_beta = tl.zeros([COLUMNS], tl.float32)
    for start in range(0, tokens, ROWS):
        rows = start + tl.arange(0, ROWS)
        place = (item * tokens + rows)[:, None] * width + columns[None, :]
        valid = (rows < tokens)[:, None] & inside[None, :]
        total = tl.load(y + place, valid, 0.0).to(tl.float32)
        above = tl.load(grad_normed + place, valid, 0.0).to(tl.float32)
        mean = tl.sum(total, 1) / width
        centred = tl.where(valid, total - mean[:, None], 0.0)
        inverse = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / width + epsilon)
        hat = centred * inverse[:, None]
        sum_gamma += tl.sum(above * hat, 0)
        sum_beta += tl.sum(above, 0)
        scaled = above * scale[None, :]
        first = tl.sum(scaled, 1) / width
        second = tl.sum(scaled * hat, 1) / width
        grad = inverse[:, None] * (scaled - first[:, None] - hat * second[:, None])
        grad = tl.where(valid, grad, 0.0) + tl.load(grad_y + place, valid, 0.0).to(tl.float32)
        tl.store(grad_x + place, grad.to(grad_x.dtype.element_ty), valid)
        tl.store(grad_branch + place, (grad * alpha[None, :]).to(grad_branch.dtype.element_ty), valid)
        sum_gate += tl.sum(grad * tl.load(branch + place, valid, 0.0).to(tl.float32), 0)
    own = item * width + columns
    tl.store(grad_gate + own, sum_gate.to(grad_gate.dtype.element_ty), inside)
    tl.store(grad_gamma + own, sum_gamma.to(grad_gamma.dtype.element_ty), inside)
    tl.store(grad_beta + own, sum_beta.to(grad_beta.dtype.element_ty), inside)


def _columns(width: int) -> int:
    return 1 << (width - 1).bit_length()


def forward(
    x: Tensor, branch: Tensor, gate: Tensor, gamma: Tensor, beta: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """The joined stream and its modulated norm."""
    items, tokens, width = x.shape
    y, normed = torch.empty_like(x), torch.empty_like(x)
    strides = (gate.stride(0), gamma.stride(0), beta.stride(0))
    grid = (items, -(-tokens // ROWS_FORWARD))
    _forward[grid](
        x, branch, gate, gamma, beta, y, normed, *strides, tokens, width, epsilon, ROWS_FORWARD, _columns(width)
    )  # fmt: skip
    return y, normed


def backward(
    grad_y: Tensor,
    grad_normed: Tensor,
    y: Tensor,
    branch: Tensor,
    gate: Tensor,
    gamma: Tensor,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of stream, branch, gate, gamma and beta."""
    items, tokens, width = y.shape
    grad_x, grad_branch = torch.empty_like(y), torch.empty_like(y)
    each = [gate.new_empty(items, width) for _ in range(3)]
    strides = (gate.stride(0), gamma.stride(0))
    _backward[(items,)](
        grad_y, grad_normed, y, branch, gate, gamma, grad_x, grad_branch, *each, *strides,
        tokens, width, epsilon, ROWS_BACKWARD, _columns(width),
    )  # fmt: skip
    return grad_x, grad_branch, each[0], each[1], each[2]
