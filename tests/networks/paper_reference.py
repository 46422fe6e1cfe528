"""The paper's two networks, written from its equations one item, one cell, one head at a time: slow, and plainly right.

Nothing of the library is used. The weights come by the names under which the library stores them, everything is
float64, the numbers are those of the paper's equations, and what the paper leaves open is said where it is decided.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

COLORS, MASK = 10, 10

Weights = dict[str, Tensor]
Shape = tuple[int, int]
Pairs = list[tuple[Tensor, Tensor]]  # the demonstrations that are there: input and output, each [cell]


# Layers.


def silu(x: Tensor) -> Tensor:
    return x / (1.0 + torch.exp(-x))


def gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def standardised(x: Tensor) -> Tensor:
    """All numbers of x together with mean 0 and variance 1."""
    return (x - x.mean()) / ((x - x.mean()).pow(2).mean() + 1e-5).sqrt()


def layer_norm(h: Tensor) -> Tensor:
    """Every cell's channels for themselves; h is [cell, channel]."""
    return torch.stack([standardised(cell) for cell in h])


def group_norm(h: Tensor, groups: int, gain: Tensor, shift: Tensor) -> Tensor:
    """Every group of channels for itself, over all cells; h is [channel, row, column]."""
    size = len(h) // groups
    normed = torch.cat([standardised(h[g * size : (g + 1) * size]) for g in range(groups)])
    return torch.stack([gain[c] * normed[c] + shift[c] for c in range(len(h))])


def conv_3x3(h: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """Every cell from itself and its eight neighbours; beyond the edge there is nothing."""
    _, height, width = h.shape
    out = torch.zeros(len(kernel), height, width, dtype=h.dtype)
    for i in range(height):
        for j in range(width):
            out[:, i, j] = bias
            for a in (-1, 0, 1):
                for b in (-1, 0, 1):
                    if 0 <= i + a < height and 0 <= j + b < width:
                        out[:, i, j] += kernel[:, :, a + 1, b + 1] @ h[:, i + a, j + b]
    return out


def one_hot(grid: Tensor, shape: Shape) -> Tensor:
    """[color, row, column]; a masked cell has no color, V = 10 leaving no channel for the mask."""
    planes = torch.zeros(COLORS, len(grid), dtype=torch.float64)
    for cell, value in enumerate(grid.tolist()):
        if value != MASK:
            planes[value, cell] = 1.0
    return planes.view(COLORS, *shape)


# Context conditioning, of both networks.


def encoded(w: Weights, name: str, planes: Tensor) -> Tensor:
    """MLP(Pool(ConvNet(.))): the convnet has two convolutions with SiLU, the MLP two layers with SiLU (Eq. 16)."""
    planes = silu(conv_3x3(planes, w[f"{name}.first"], w[f"{name}.first_bias"]))
    planes = silu(conv_3x3(planes, w[f"{name}.second"], w[f"{name}.second_bias"]))
    pooled = planes.mean((1, 2))
    hidden = silu(w[f"{name}.up"] @ pooled + w[f"{name}.up_bias"])
    return w[f"{name}.out"] @ hidden + w[f"{name}.out_bias"]


def context(w: Weights, query: Tensor, pairs: Pairs, shape: Shape) -> Tensor:
    """The query's encoding and the mean of the pairs' (Eq. 16, 26); PairEnc sees input and output side by side."""
    c = encoded(w, "query", one_hot(query, shape))
    for one, other in pairs:
        joined = torch.cat([one_hot(one, shape), one_hot(other, shape)])
        c = c + encoded(w, "pair", joined) / len(pairs)
    return c


def mlp(w: Weights, block: str, c: Tensor) -> Tensor:
    """MLP(c) of a block, [part, channel] (Eq. 17, 24): two layers with SiLU between."""
    hidden = silu(w[f"{block}.modulation_in"] @ c + w[f"{block}.modulation_in_bias"])
    return torch.stack(
        [
            matrix @ hidden + bias
            for matrix, bias in zip(w[f"{block}.modulation"], w[f"{block}.modulation_bias"], strict=True)
        ]
    )


# Iterative refinement, of both networks.


def refined(f, h: Tensor, z_high: Tensor, z_low: Tensor, cycles: tuple[int, int]) -> Tensor:
    """H cycles of L updates of z_L and one of z_H, as in TRM; the paper does not give them."""
    for _ in range(cycles[0]):
        for _ in range(cycles[1]):
            z_low = f(z_low + z_high + h)
        z_high = f(z_high + z_low)
    return z_high


def log_probs(logits: Tensor, x_t: Tensor) -> Tensor:
    """SUBS: the mask's logit is minus infinity, and a cell that is not masked keeps its color."""
    out = torch.full((len(x_t), COLORS), -math.inf, dtype=logits.dtype)
    for cell, value in enumerate(x_t.tolist()):
        if value == MASK:
            with_mask = torch.cat([logits[cell], torch.tensor([-math.inf], dtype=logits.dtype)])
            out[cell] = (with_mask - with_mask.exp().sum().log())[:COLORS]
        else:
            out[cell, value] = 0.0
    return out


# Trans-IR.


def positions(shape: Shape, d: int) -> Tensor:
    """2D sinusoidal positions (Eq. 15)."""
    table = torch.zeros(shape[0] * shape[1], d, dtype=torch.float64)
    for i in range(shape[0]):
        for j in range(shape[1]):
            for k in range(1, d // 4 + 1):
                omega = 1.0 / 10000.0 ** (4.0 * k / d)
                four = [math.sin(omega * i), math.cos(omega * i), math.sin(omega * j), math.cos(omega * j)]
                table[i * shape[1] + j, 4 * (k - 1) : 4 * k] = torch.tensor(four, dtype=torch.float64)
    return table


def attended(w: Weights, block: str, h: Tensor, heads: int) -> Tensor:
    """Every cell looks at all cells; h is [cell, channel]."""
    out = w[f"{block}.out_bias"].repeat(len(h), 1)
    for head in range(heads):
        q, k, v = (
            h @ w[f"{block}.qkv"][part, head].T + w[f"{block}.qkv_bias"][part, head] for part in range(3)
        )
        for cell in range(len(h)):
            score = k @ q[cell] / math.sqrt(q.shape[1])
            share = score.exp() / score.exp().sum()
            out[cell] += w[f"{block}.out"][:, head] @ (share @ v)
    return out


def fed_forward(w: Weights, block: str, h: Tensor) -> Tensor:
    hidden = gelu(h @ w[f"{block}.up"].T + w[f"{block}.up_bias"])
    return hidden @ w[f"{block}.down"].T + w[f"{block}.down_bias"]


def trans_ir(
    w: Weights,
    x_t: Tensor,
    query: Tensor,
    pairs: Pairs,
    shape: Shape,
    *,
    blocks: int,
    heads: int,
    slots: int,
    cycles: tuple[int, int],
) -> Tensor:
    """The log-probabilities of one item, [cell, color]."""
    table, d = w["embed.table"], w["embed.table"].shape[1]
    # Eq. (14), with the demonstrations as more channels beside the query; one that is missing is zero.
    canvases = [x_t, query] + [grid for pair in pairs[:slots] for grid in pair]
    h = positions(shape, d)
    for cell in range(len(x_t)):
        joined = torch.zeros(2 + 2 * slots, d, dtype=torch.float64)
        for number, grid in enumerate(canvases):
            joined[number] = table[int(grid[cell])]
        h[cell] += w["embed.join"].reshape(d, -1) @ joined.flatten()
    c = context(w, query, pairs, shape)

    def f(state: Tensor) -> Tensor:
        for block in (f"blocks.{n}" for n in range(blocks)):
            gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = mlp(w, block, c)  # Eq. (17)
            normed = gamma_1 * layer_norm(state) + beta_1  # Eq. (18)
            state = state + alpha_1 * attended(w, block, normed, heads)  # Eq. (19)
            normed = gamma_2 * layer_norm(state) + beta_2
            state = state + alpha_2 * fed_forward(w, block, normed)  # Eq. (20)
        return state

    start = [w[name].repeat(len(x_t), 1) for name in ("z_high", "z_low")]
    last = refined(f, h, *start, cycles)
    normed = w["head.gain"] * layer_norm(last) + w["head.shift"]
    return log_probs(normed @ w["head.weight"].T + w["head.bias"], x_t)  # Eq. (21)


# Conv-IR.


def branch(w: Weights, block: str, h: Tensor, c: Tensor, groups: int) -> Tensor:
    """What a residual block adds to its input (Eq. 23-25)."""
    normed = group_norm(h, groups, w[f"{block}.gain_1"], w[f"{block}.shift_1"])
    h_1 = conv_3x3(silu(normed), w[f"{block}.first"], w[f"{block}.first_bias"])
    h_2 = h_1 + mlp(w, block, c)[0][:, None, None]
    normed = group_norm(h_2, groups, w[f"{block}.gain_2"], w[f"{block}.shift_2"])
    return conv_3x3(silu(normed), w[f"{block}.second"], w[f"{block}.second_bias"])


def squares(shape: Shape) -> list[list[tuple[int, int]]]:
    """The cells of each 2x2 square, row by row; at an odd edge there are fewer."""
    return [
        [(i, j) for i in (top, top + 1) for j in (left, left + 1) if i < shape[0] and j < shape[1]]
        for top in range(0, shape[0], 2)
        for left in range(0, shape[1], 2)
    ]


def halved(h: Tensor) -> Tensor:
    """The mean of each square."""
    shape = h.shape[1], h.shape[2]
    means = [sum(h[:, i, j] for i, j in square) / len(square) for square in squares(shape)]
    return torch.stack(means, 1).view(len(h), (shape[0] + 1) // 2, (shape[1] + 1) // 2)


def enlarged(h: Tensor, shape: Shape) -> Tensor:
    """Each square's number for all its cells."""
    out = torch.zeros(len(h), *shape, dtype=h.dtype)
    for square, value in zip(squares(shape), h.flatten(1).T, strict=True):
        for i, j in square:
            out[:, i, j] = value
    return out


def conv_ir(
    w: Weights,
    x_t: Tensor,
    query: Tensor,
    pairs: Pairs,
    shape: Shape,
    *,
    groups: int,
    slots: int,
    cycles: tuple[int, int],
) -> Tensor:
    """The log-probabilities of one item, [cell, color]."""
    # Eq. (22), with the demonstrations as more channels beside the query; one that is missing is zero.
    told = [one_hot(grid, shape) for grid in (x_t, query, *(grid for pair in pairs[:slots] for grid in pair))]
    missing = torch.zeros(COLORS * (2 + 2 * slots - len(told)), *shape, dtype=torch.float64)
    kernel = torch.cat([w["embed.x_t"], w["embed.query"]], 1)
    h = conv_3x3(torch.cat([*told, missing]), kernel, w["embed.bias"].flatten())
    c = context(w, query, pairs, shape)

    def f(state: Tensor) -> Tensor:
        # The appendix's two blocks h' = h + branch(h), the second at the bottom of the main text's U.
        state = state + branch(w, "blocks.0", state, c, groups)
        return state + enlarged(branch(w, "blocks.1", halved(state), c, groups), shape)

    start = [w[name].expand(-1, *shape) for name in ("z_high", "z_low")]
    last = refined(f, h, *start, cycles)
    normed = silu(group_norm(last, groups, w["head.gain"], w["head.shift"]))
    logits = conv_3x3(normed, w["head.weight"], w["head.bias"])  # Eq. (27)
    return log_probs(logits.flatten(1).T, x_t)
