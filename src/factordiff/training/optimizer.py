r"""Muon for the hidden matrices and AdamW for the rest, each on its part of the weight vector.

Muon replaces the momentum of a matrix by (almost) its nearest orthogonal matrix, found by five Newton-Schulz
iterations $X \leftarrow aX + (bA + cA^2)X$, $A = XX^\top$. Matrices are stacked and iterated together. Everything
happens on the device without waiting for it, so that a whole step can be recorded in one CUDA graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.networks.parameters import Layout

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
EPSILON = 1e-7

Vector = Float[Tensor, " parameter"]


def orthogonalize(
    matrices: Float[Tensor, "matrix row column"], dtype: torch.dtype
) -> Float[Tensor, "matrix row column"]:
    """Newton-Schulz on a stack of matrices with no more rows than columns. Zero rows and columns stay zero."""
    a, b, c = COEFFICIENTS
    x = matrices.to(dtype)
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=EPSILON)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


@dataclass(frozen=True)
class Stack:
    """Matrices that are iterated together: where each element comes from, and the update's scale."""

    index: Int[Tensor, "matrix row column"]
    scale: Float[Tensor, "matrix 1 1"]


def stacks(layout: Layout, padded: bool) -> tuple[list[Stack], Int[Tensor, " hidden"]]:
    """The stacks of a layout's hidden matrices, and where in their concatenation each parameter's update lies.

    Matrices lie on their long side. `padded` puts all of them into one stack with zeros around the smaller
    ones, which changes nothing and needs few, large operations (for a GPU); otherwise equal shapes share a stack.
    Index `layout.hidden` means "zero".
    """
    by_shape: dict[tuple[int, int], list[Tensor]] = {}
    for name, slot in layout.slots.items():
        if slot.matrices is None:
            continue
        count, rows, columns = slot.matrices
        index = torch.arange(slot.size).view(count, rows, columns) + layout.offsets[name]
        for matrix in index.unbind(0):
            lying = matrix if rows <= columns else matrix.T
            by_shape.setdefault((min(rows, columns), max(rows, columns)), []).append(lying)
    longest = [columns for (_, columns), matrices in by_shape.items() for _ in matrices]
    if padded and by_shape:
        tall = max(rows for rows, _ in by_shape)
        wide = max(columns for _, columns in by_shape)
        everything = [
            F.pad(matrix, (0, wide - columns, 0, tall - rows), value=layout.hidden)
            for (rows, columns), matrices in by_shape.items()
            for matrix in matrices
        ]
        by_shape = {(tall, wide): everything}
    # match_rms_adamw: an orthogonal matrix of this shape then has the root mean square of an AdamW update.
    scales = (0.2 * torch.tensor(longest, dtype=torch.float32).sqrt())[:, None, None]
    result = []
    position = torch.zeros(layout.hidden + 1, dtype=torch.int64)
    end = 0
    sizes = [len(matrices) for matrices in by_shape.values()]
    for matrices, scale in zip(by_shape.values(), scales.split(sizes), strict=True):
        index = torch.stack(matrices)
        result.append(Stack(index, scale))
        position[index.flatten()] = torch.arange(end, end + index.numel())
        end += index.numel()
    covered = torch.zeros(layout.hidden + 1, dtype=torch.bool)
    for stack in result:
        covered[stack.index.flatten()] = True
    position[~covered] = end  # the alignment's gaps take the zero that is appended to the updates
    return result, position[: layout.hidden]


class Optimizer:
    """Muon and AdamW over one vector; `momentum`, `mean` and `square` are its state."""

    def __init__(
        self,
        layout: Layout,
        *,
        lr: float,
        lr_rest: float,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        device = torch.device(device)
        self.hidden = layout.hidden
        self.lr, self.lr_rest = lr, lr_rest
        self.beta, self.betas, self.weight_decay, self.dtype = momentum, betas, weight_decay, dtype
        found, position = stacks(layout, padded=device.type == "cuda")
        self.stacks = [Stack(stack.index.to(device), stack.scale.to(device)) for stack in found]
        self.position = position.to(device)
        self.momentum = torch.zeros(layout.hidden, device=device)
        self.mean = torch.zeros(layout.size - layout.hidden, device=device)
        self.square = torch.zeros_like(self.mean)

    def state(self) -> dict[str, Tensor]:
        """The tensors that a checkpoint must hold."""
        return {"momentum": self.momentum, "mean": self.mean, "square": self.square}

    @torch.no_grad()
    def step(
        self,
        vector: Vector,
        gradient: Vector,
        factor: Float[Tensor, ""],
        updates: Int[Tensor, ""],
        good: Bool[Tensor, ""],
    ) -> None:
        """Move the vector against the gradient, in place; where `good` is false nothing changes at all.

        `updates` is how many updates were made before this one, `factor` the schedule's.
        """

        def keep(new: Tensor, old: Tensor) -> None:
            old.copy_(torch.where(good, new, old))

        hidden, rest = vector[: self.hidden], vector[self.hidden :]
        new_hidden, new_momentum = self._muon(hidden, gradient[: self.hidden], factor)
        new_rest, new_mean, new_square = self._adamw(rest, gradient[self.hidden :], factor, updates)
        keep(new_hidden, hidden)
        keep(new_momentum, self.momentum)
        keep(new_rest, rest)
        keep(new_mean, self.mean)
        keep(new_square, self.square)

    def _muon(self, weights: Vector, gradient: Vector, factor: Tensor) -> tuple[Tensor, Tensor]:
        momentum = torch.lerp(self.momentum, gradient, 1.0 - self.beta)
        nesterov = F.pad(torch.lerp(gradient, momentum, self.beta), (0, 1))
        updates = [
            (orthogonalize(nesterov[stack.index], self.dtype).float() * stack.scale).flatten()
            for stack in self.stacks
        ]
        update = torch.cat([*updates, weights.new_zeros(1)])[self.position]
        rate = self.lr * factor
        return weights * (1.0 - rate * self.weight_decay) - rate * update, momentum

    def _adamw(
        self, weights: Vector, gradient: Vector, factor: Tensor, updates: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        first, second = self.betas
        mean = torch.lerp(self.mean, gradient, 1.0 - first)
        square = torch.lerp(self.square, gradient * gradient, 1.0 - second)
        count = (updates + 1).to(torch.float32)
        unbiased = mean / (1.0 - first**count)
        spread = (square / (1.0 - second**count)).sqrt() + 1e-8
        rate = self.lr_rest * factor
        return weights * (1.0 - rate * self.weight_decay) - rate * unbiased / spread, mean, square
