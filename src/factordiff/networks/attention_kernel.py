"""The Triton kernels of attention in a window of at most 128 tokens: one program holds a whole head of one row.

General kernels split long sequences over programs and read separate query, key and value tensors. Here a window fits
on chip: a program reads the packed projection as the matrix product left it, turns queries and keys, adds the extra
keys and values without a concatenation, and backwards writes the packed gradient with no second pass and no atomics.
Usable where Triton and a GPU are, importable everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor

from factordiff.kernels import jit, tl, triton

# What was fastest on an H200 for 100 tokens in heads of 40.
FORWARD: dict[str, int] = {"num_warps": 8, "num_stages": 1, "maxnreg": 128}
BACKWARD: dict[str, int] = {"BLOCK": 32, "num_warps": 4, "num_stages": 1}


@jit
def _product(one, two):  # type: ignore[no-untyped-def]
    """A matrix product summed in float32; float32 factors are not rounded to TF32."""
    return tl.dot(one, two, input_precision="ieee")


@jit
def _load(pointer, stride_row, rows, columns, row_count, column_count):  # type: ignore[no-untyped-def]
    mask = (rows[:, None] < row_count) & (columns[None, :] < column_count)
    return tl.load(pointer + rows[:, None] * stride_row + columns[None, :], mask=mask, other=0.0)


@jit
def _store(pointer, values, stride_row, rows, columns, row_count, column_count):  # type: ignore[no-untyped-def]
    mask = (rows[:, None] < row_count) & (columns[None, :] < column_count)
    place = pointer + rows[:, None] * stride_row + columns[None, :]
    tl.store(place, values.to(pointer.dtype.element_ty), mask=mask)


@jit
def _angles(cosine, sine, rows, columns, row_count, turning):  # type: ignore[no-untyped-def]
    """Cosines and signed sines; channels that do not turn have (1, 0)."""
    mask = (rows[:, None] < row_count) & (columns[None, :] < turning)
    place = rows[:, None] * turning + columns[None, :]
    cos = tl.load(cosine + place, mask=mask, other=1.0).to(tl.float32)
    return cos, tl.load(sine + place, mask=mask, other=0.0).to(tl.float32)


@jit
def _turned(plain, cosine, sine, rows, columns, swapped, row_count, turning):  # type: ignore[no-untyped-def]
    """Rows of queries or keys, each channel pair turned by its row's angle."""
    cos, sin = _angles(cosine, sine, rows, columns, row_count, turning)
    exchange = (swapped[:, None] == columns[None, :]).to(plain.dtype)
    return (plain.to(tl.float32) * cos + _product(plain, exchange) * sin).to(plain.dtype)


@jit
def _turned_back(gradient, like, cosine, sine, rows, columns, swapped, row_count, turning):  # type: ignore[no-untyped-def]
    """The gradient of what `_turned` was given: the transposed rotation."""
    cos, sin = _angles(cosine, sine, rows, columns, row_count, turning)
    exchange = (swapped[:, None] == columns[None, :]).to(like.dtype)
    return gradient * cos + _product((gradient * sin).to(like.dtype), exchange)


@jit
def _forward(  # type: ignore[no-untyped-def]
    qkv, key_extra, value_extra, cosine, sine, out, log_sum, scale,
    tokens: tl.constexpr, extras: tl.constexpr, heads: tl.constexpr, size: tl.constexpr, turning: tl.constexpr,
    TOKENS: tl.constexpr, EXTRAS: tl.constexpr, SIZE: tl.constexpr, ROTARY: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0).to(tl.int64) // heads, tl.program_id(0) % heads
    stride = 3 * heads * size
    base = qkv + row * tokens * stride + head * size
    n, d = tl.arange(0, TOKENS), tl.arange(0, SIZE)
    q = _load(base, stride, n, d, tokens, size)
    k = _load(base + heads * size, stride, n, d, tokens, size)
    if ROTARY:
        swapped = tl.where(d < turning, (d + turning // 2) % turning, d)
        q = _turned(q, cosine, sine, n, d, swapped, tokens, turning)
        k = _turned(k, cosine, sine, n, d, swapped, tokens, turning)
    v = _load(base + 2 * heads * size, stride, n, d, tokens, size)
    factor = scale * 1.4426950408889634
    s = _product(q, tl.trans(k)) * factor
    s = tl.where(n[None, :] < tokens, s, -float("inf"))
    top = tl.max(s, 1)
    if EXTRAS > 0:
        e = tl.arange(0, EXTRAS)
        extra_base = (row * heads + head) * extras * size
        ke = _load(key_extra + extra_base, size, e, d, extras, size)
        ve = _load(value_extra + extra_base, size, e, d, extras, size)
        se = _product(q, tl.trans(ke)) * factor
        se = tl.where(e[None, :] < extras, se, -float("inf"))
        top = tl.maximum(top, tl.max(se, 1))
    p = tl.exp2(s - top[:, None])
    total = tl.sum(p, 1)
    o = _product(p.to(v.dtype), v)
    if EXTRAS > 0:
        pe = tl.exp2(se - top[:, None])
        total += tl.sum(pe, 1)
        o += _product(pe.to(ve.dtype), ve)
    o = o / total[:, None]
    _store(out + row * tokens * heads * size + head * size, o, heads * size, n, d, tokens, size)
    tl.store(log_sum + (row * heads + head) * tokens + n, top + tl.log2(total), mask=n < tokens)


@jit
def _backward(  # type: ignore[no-untyped-def]
    qkv, key_extra, value_extra, cosine, sine, out, log_sum, grad_out, grad_qkv, grad_key, grad_value, scale,
    tokens: tl.constexpr, extras: tl.constexpr, heads: tl.constexpr, size: tl.constexpr, turning: tl.constexpr,
    TOKENS: tl.constexpr, EXTRAS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, ROTARY: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0).to(tl.int64) // heads, tl.program_id(0) % heads
    stride = 3 * heads * size
    base = qkv + row * tokens * stride + head * size
    grad_base = grad_qkv + row * tokens * stride + head * size
    out_base = row * tokens * heads * size + head * size
    n, d = tl.arange(0, TOKENS), tl.arange(0, SIZE)
    swapped = tl.where(d < turning, (d + turning // 2) % turning, d) if ROTARY else d
    q = _load(base, stride, n, d, tokens, size)
    if ROTARY:
        q = _turned(q, cosine, sine, n, d, swapped, tokens, turning)
    do = _load(grad_out + out_base, heads * size, n, d, tokens, size)
    o = _load(out + out_base, heads * size, n, d, tokens, size)
    delta = tl.sum(do.to(tl.float32) * o.to(tl.float32), 1)
    log_total = tl.load(log_sum + (row * heads + head) * tokens + n, mask=n < tokens, other=float("inf"))
    factor = scale * 1.4426950408889634
    dq = tl.zeros((TOKENS, SIZE), dtype=tl.float32)
    for start in tl.range(0, tokens, BLOCK):
        m = start + tl.arange(0, BLOCK)
        k = _load(base + heads * size, stride, m, d, tokens, size)
        if ROTARY:
            k = _turned(k, cosine, sine, m, d, swapped, tokens, turning)
        v = _load(base + 2 * heads * size, stride, m, d, tokens, size)
        p = tl.exp2(_product(q, tl.trans(k)) * factor - log_total[:, None])
        p = tl.where(m[None, :] < tokens, p, 0.0)
        dp = _product(do, tl.trans(v))
        ds = (p * (dp - delta[:, None]) * scale).to(k.dtype)
        dq += _product(ds, k)
        dv = _product(tl.trans(p.to(do.dtype)), do)
        dk = _product(tl.trans(ds), q)
        if ROTARY:
            dk = _turned_back(dk, k, cosine, sine, m, d, swapped, tokens, turning)
        _store(grad_base + heads * size, dk, stride, m, d, tokens, size)
        _store(grad_base + 2 * heads * size, dv, stride, m, d, tokens, size)
    if EXTRAS > 0:
        e = tl.arange(0, EXTRAS)
        extra_base = (row * heads + head) * extras * size
        ke = _load(key_extra + extra_base, size, e, d, extras, size)
        ve = _load(value_extra + extra_base, size, e, d, extras, size)
        pe = tl.exp2(_product(q, tl.trans(ke)) * factor - log_total[:, None])
        pe = tl.where(e[None, :] < extras, pe, 0.0)
        dpe = _product(do, tl.trans(ve))
        dse = (pe * (dpe - delta[:, None]) * scale).to(ke.dtype)
        dq += _product(dse, ke)
        _store(grad_value + extra_base, _product(tl.trans(pe.to(do.dtype)), do), size, e, d, extras, size)
        _store(grad_key + extra_base, _product(tl.trans(dse), q), size, e, d, extras, size)
    if ROTARY:
        dq = _turned_back(dq, q, cosine, sine, n, d, swapped, tokens, turning)
    _store(grad_base, dq, stride, n, d, tokens, size)


def _sizes(tokens: int, extras: int, size: int) -> dict[str, int]:
    up = triton.next_power_of_2
    return {
        "TOKENS": max(16, up(tokens)),
        "EXTRAS": max(16, up(extras)) if extras else 0,
        "SIZE": max(16, up(size)),
    }


def forward(
    qkv: Tensor, keys: Tensor, values: Tensor, rotation: Tensor, heads: int, scale: float
) -> tuple[Tensor, Tensor]:
    """What every token reads, and the logarithm (base 2) of each softmax's denominator."""
    qkv, keys, values = (part.contiguous() for part in (qkv, keys, values))
    batch, tokens, packed = qkv.shape
    size, extras = packed // (3 * heads), keys.shape[2]
    out = qkv.new_empty(batch, tokens, heads * size)
    log_sum = torch.empty(batch, heads, tokens, dtype=torch.float32, device=qkv.device)
    _forward[(batch * heads,)](
        qkv, keys, values, rotation[0], rotation[1], out, log_sum, scale,
        tokens, extras, heads, size, rotation.shape[-1],
        **_sizes(tokens, extras, size), ROTARY=rotation.numel() > 0, **FORWARD,
    )  # fmt: skip
    return out, log_sum


def backward(
    qkv: Tensor,
    keys: Tensor,
    values: Tensor,
    rotation: Tensor,
    out: Tensor,
    log_sum: Tensor,
    grad_out: Tensor,
    heads: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the packed projection and of the extra keys and values."""
    qkv, keys, values, grad_out = (part.contiguous() for part in (qkv, keys, values, grad_out))
    batch, tokens, packed = qkv.shape
    size, extras = packed // (3 * heads), keys.shape[2]
    gradients = torch.empty_like(qkv), torch.empty_like(keys), torch.empty_like(values)
    _backward[(batch * heads,)](
        qkv, keys, values, rotation[0], rotation[1], out, log_sum, grad_out, *gradients, scale,
        tokens, extras, heads, size, rotation.shape[-1],
        **_sizes(tokens, extras, size), ROTARY=rotation.numel() > 0, **BACKWARD,
    )  # fmt: skip
    return gradients
