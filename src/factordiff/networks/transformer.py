"""The transformer block, its rotary positions, and a constant modulation folded into its weights."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.networks.attention import Extra, Rotation, attention

Hidden = Float[Tensor, "batch token channel"]
Each = Float[Tensor, "batch 1 channel"]

FASTEST, SLOWEST = 2.0, 0.1  # radians per cell: wavelengths from 3 to 60 cells
SLOWEST_IN_LINE = 0.002  # of a sequence: wavelengths from 6 to 3,000 cells


class Block(NamedTuple):
    """The weights of one block, heads padded and flattened.

    Our own blocks have biases only where a modulation was folded in; the paper's has them all.
    """

    qkv: Tensor
    out: Tensor
    up: Tensor
    down: Tensor
    qkv_bias: Tensor | None = None
    up_bias: Tensor | None = None
    out_bias: Tensor | None = None
    down_bias: Tensor | None = None


def plain_block(
    x: Hidden, block: Block, heads: int, scale: float, rotation: Rotation | None = None, fused: bool = False
) -> Hidden:
    """One block without modulation, or with one folded into its weights."""
    width = (x.shape[-1],)
    x = x + attend(F.layer_norm(x, width), block, None, heads, scale, rotation, fused)
    return x + feed_forward(F.layer_norm(x, width), block)


def transformer_blocks(
    x: Hidden,
    blocks: list[Block],
    modulations: Float[Tensor, "batch block six channel"],
    extras: list[Extra | None],
    heads: int,
    scale: float,
    rotation: Rotation | None = None,
    fused: bool = False,
    bare: bool = False,
) -> Hidden:
    r"""Adaptive blocks (adaLN-Zero) one after another: attention, then the FFN, both modulated.

    $h' = h + \alpha_1\,\mathrm{Attn}(\gamma_1\,\mathrm{norm}(h)+\beta_1)$, and the FFN likewise. With `bare` that is
    the whole of it, as the paper writes it; ours has $1+\gamma$ for $\gamma$. `extras` are keys and values that every
    cell sees beside the cells. `fused` attends in a kernel of our own.

    Paper: Eq. (18)-(20).
    """
    for block, extra, modulation in zip(blocks, extras, modulations.unbind(1), strict=True):
        gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = modulation.unsqueeze(2).unbind(1)
        normed = modulated(x, gamma_1, beta_1, bare)
        x = x + alpha_1 * attend(normed, block, extra, heads, scale, rotation, fused)
        x = x + alpha_2 * feed_forward(modulated(x, gamma_2, beta_2, bare), block)
    return x


def modulated(x: Hidden, gamma: Each, beta: Each, bare: bool = False) -> Hidden:
    r"""$(1+\gamma)\,\mathrm{norm}(x)+\beta$, with one $\gamma$ and $\beta$ for all tokens of an item.

    `bare` leaves the 1 away. Paper: Eq. (18).
    """
    return F.layer_norm(x, (x.shape[-1],)) * (gamma if bare else 1.0 + gamma) + beta


def attend(
    normed: Hidden,
    block: Block,
    extra: Extra | None,
    heads: int,
    scale: float,
    rotation: Rotation | None,
    fused: bool = False,
) -> Hidden:
    """Multi-head attention over all tokens, and over the extra keys and values."""
    projected = F.linear(normed, block.qkv, block.qkv_bias)
    return F.linear(attention(projected, extra, rotation, heads, scale, fused), block.out, block.out_bias)


def feed_forward(normed: Hidden, block: Block) -> Hidden:
    """Two layers with GELU between."""
    return F.linear(F.gelu(F.linear(normed, block.up, block.up_bias)), block.down, block.down_bias)


def fold(block: Block, modulation: Float[Tensor, "six channel"]) -> Block:
    r"""The block whose plain form equals this one under a constant modulation.

    $W((1+\gamma)\,n + \beta) = (W(1+\gamma))\,n + W\beta$, and a gate scales the rows of the matrix before it.
    """
    gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = modulation.unbind(0)
    return Block(
        block.qkv * (1.0 + gamma_1),
        block.out * alpha_1.unsqueeze(-1),
        block.up * (1.0 + gamma_2),
        block.down * alpha_2.unsqueeze(-1),
        block.qkv @ beta_1,
        block.up @ beta_2,
    )


def rotations(height: int, width: int, size: int, patch: int = 1) -> Rotation:
    r"""Rotary positions of a grid of patches: half of a head's channel pairs turn with the row, half with the column.

    A pair $(a, b)$ at position p becomes $(a\cos\omega p - b\sin\omega p,\; a\sin\omega p + b\cos\omega p)$, so that
    attention sees the offset between two cells.
    """
    pairs = size // 4
    exponent = torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1)
    omega = FASTEST * (SLOWEST / FASTEST) ** exponent
    row, column = (
        torch.arange(side // patch, dtype=torch.float64) * patch + (patch - 1) / 2 for side in (height, width)
    )
    row, column = torch.cartesian_prod(row, column).unbind(1)
    angle = torch.cat([row[:, None] * omega, column[:, None] * omega], 1)
    return torch.stack([torch.cat([angle.cos()] * 2, 1), torch.cat([-angle.sin(), angle.sin()], 1)]).float()


def line_rotations(length: int, size: int) -> Rotation:
    """Rotary positions of a sequence: every pair of a head's channels turns with the place, the first the fastest."""
    pairs = size // 2
    exponent = torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * SLOWEST_IN_LINE**exponent
    return torch.stack([torch.cat([angle.cos()] * 2, 1), torch.cat([-angle.sin(), angle.sin()], 1)]).float()
