"""Attention over the cells of a window and a few extra keys and values, in plain operations or in one kernel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.networks import attention_kernel as kernel

Packed = Float[Tensor, "batch token packed"]  # query, key and value of every head, side by side
Extra = tuple[Tensor, Tensor]  # keys and values [batch, head, latent, size] that every token sees
Rotation = Float[Tensor, "2 token size"]  # cosines and signed sines

LONGEST_WINDOW = 128  # tokens that the kernel holds on chip


def attention(
    qkv: Packed, extra: Extra | None, rotation: Rotation | None, heads: int, scale: float, fused: bool = False
) -> Float[Tensor, "batch token channel"]:
    """Multi-head attention on a packed projection. `fused` needs a GPU."""
    if fused and qkv.shape[1] <= LONGEST_WINDOW:
        nothing = qkv.new_empty(qkv.shape[0], heads, 0, qkv.shape[-1] // (3 * heads))
        keys, values = (nothing, nothing) if extra is None else extra
        turning = qkv.new_empty(2, qkv.shape[1], 0) if rotation is None else rotation
        return torch.ops.factordiff.attend(qkv, keys, values, turning, heads, scale)[0]
    query, key, value = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    if rotation is not None:
        query, key = rotate(query, rotation), rotate(key, rotation)
    if extra is not None:
        key, value = torch.cat([key, extra[0]], 2), torch.cat([value, extra[1]], 2)
    attended = F.scaled_dot_product_attention(query, key, value, scale=scale)
    return attended.transpose(1, 2).flatten(2)


def rotate(
    x: Float[Tensor, "batch head token padded"], rotation: Rotation
) -> Float[Tensor, "batch head token padded"]:
    """Turn each pair of channels (i, i + half) by its token's angle; padding stays zero."""
    size = rotation.shape[-1]
    real = x[..., :size]
    turned = real * rotation[0] + torch.roll(real, size // 2, -1) * rotation[1]
    return torch.cat([turned, x[..., size:]], -1)


def pad_heads(weight: Tensor, dim: int, to: int) -> Tensor:
    """Zero rows up to a head size that attention kernels like; they change nothing."""
    missing = to - weight.shape[dim]
    return F.pad(weight, (0, 0) * (weight.ndim - 1 - dim % weight.ndim) + (0, missing)) if missing else weight


def padded_head(size: int) -> int:
    """The head size stored for attention: the next multiple of 8."""
    return -(-size // 8) * 8


_attend = torch.library.custom_op(
    "factordiff::attend",
    kernel.forward,
    mutates_args=(),
    schema="(Tensor qkv, Tensor keys, Tensor values, Tensor rotation, int heads, float scale) -> (Tensor, Tensor)",
)


@_attend.register_fake
def _(
    qkv: Tensor, keys: Tensor, values: Tensor, rotation: Tensor, heads: int, scale: float
) -> tuple[Tensor, Tensor]:
    batch, tokens, packed = qkv.shape
    return qkv.new_empty(batch, tokens, packed // 3), qkv.new_empty(batch, heads, tokens, dtype=torch.float32)


_attend_gradient = torch.library.custom_op(
    "factordiff::attend_gradient",
    kernel.backward,
    mutates_args=(),
    schema="(Tensor qkv, Tensor keys, Tensor values, Tensor rotation, Tensor out, Tensor log_sum, Tensor grad_out,"
    " int heads, float scale) -> (Tensor, Tensor, Tensor)",
)


@_attend_gradient.register_fake
def _(qkv: Tensor, keys: Tensor, values: Tensor, *others: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    qkv, keys, values = (torch.empty_like(part.contiguous()) for part in (qkv, keys, values))
    return qkv, keys, values


def _remember(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.heads, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


def _differentiate(ctx, grad_out, grad_log_sum):  # type: ignore[no-untyped-def]
    found = torch.ops.factordiff.attend_gradient(*ctx.saved_tensors, grad_out, ctx.heads, ctx.scale)
    return *found, None, None, None


_attend.register_autograd(_differentiate, setup_context=_remember)
