"""The parts of Conv-IR: what a residual block adds, the step down the U, and attention among a picture's places."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.networks.attention import Extra, Rotation, attention
from factordiff.networks.parameters import Weights
from factordiff.networks.transformer import modulated

Planes = Float[Tensor, "batch channel height width"]


def halved(planes: Planes) -> Float[Tensor, "batch channel half_height half_width"]:
    """The mean of each 2x2 square; at an odd edge, of the cells that are there.

    The edge is repeated by hand: compiled, the gradients of `ceil_mode` and of `F.pad` are wrong (torch 2.13).
    """
    height, width = planes.shape[-2:]
    if height % 2:
        planes = torch.cat([planes, planes[:, :, -1:]], 2)
    if width % 2:
        planes = torch.cat([planes, planes[:, :, :, -1:]], 3)
    return F.avg_pool2d(planes, 2)


def convolved(
    x: Planes,
    weights: Weights,
    name: str,
    injection: Float[Tensor, "batch channel"],
    groups: int,
    scale: Float[Tensor, "batch channel"] | None = None,
) -> Planes:
    r"""What a residual block adds to its input, with the context injected after the first convolution.

    $h_1=\mathrm{Conv}(\mathrm{SiLU}(\mathrm{GN}(h)))$, $h_2=h_1+\mathrm{MLP}(c)$,
    $\mathrm{Conv}(\mathrm{SiLU}((1+\gamma)\,\mathrm{GN}(h_2)))$; the second kernel is as wide as its weights say.

    Paper: Eq. (23)-(25), where $\gamma=0$. What is injected alone passes through the second normalisation, which takes
    much of it back; a scale behind it does not.
    """
    inner = F.silu(F.group_norm(x, groups, weights[f"{name}.gain_1"], weights[f"{name}.shift_1"]))
    inner = F.conv2d(inner, weights[f"{name}.first"], weights.get(f"{name}.first_bias"), padding=1)
    inner = inner + injection[:, :, None, None]
    inner = F.group_norm(inner, groups, weights[f"{name}.gain_2"], weights[f"{name}.shift_2"])
    if scale is not None:
        inner = inner * (1.0 + scale[:, :, None, None])
    return same_size(F.silu(inner), weights[f"{name}.second"], weights.get(f"{name}.second_bias"))


def same_size(
    planes: Planes, kernel: Float[Tensor, "out channel size size"], bias: Float[Tensor, " out"] | None = None
) -> Float[Tensor, "batch out height width"]:
    """The convolution that keeps a picture's size."""
    return F.conv2d(planes, kernel, bias, padding=kernel.shape[-1] // 2)


def attend(
    planes: Planes,
    weights: Weights,
    name: str,
    gate: Float[Tensor, "*batch_and_one channel"],
    modulation: Float[Tensor, "batch two channel"] | None,
    extra: Extra | None,
    rotation: Rotation,
    heads: int,
    scale: float,
    fused: bool = False,
) -> Planes:
    r"""Every place reads every other, and the extra keys and values.

    $h' = h + g\,\mathrm{Attn}((1+\gamma)\,\mathrm{norm}(h)+\beta)$.

    Convolutions alone carry a value a few cells per application; a mirror or an overlay of two halves needs it at once.
    The modulation tells the attention which of these the task is.
    """
    tokens = planes.flatten(2).transpose(1, 2)
    if modulation is None:
        normed = F.layer_norm(tokens, (tokens.shape[-1],))
    else:
        gamma, beta = modulation.unsqueeze(2).unbind(1)
        normed = modulated(tokens, gamma, beta)
    read = attention(F.linear(normed, weights[f"{name}.qkv"]), extra, rotation, heads, scale, fused)
    tokens = tokens + gate * F.linear(read, weights[f"{name}.out"])
    return tokens.transpose(1, 2).unflatten(2, tuple(planes.shape[-2:]))
