"""All weights of a network in one vector, and the names and shapes that divide it.

One vector makes everything that concerns all weights a single operation: the cast to bfloat16, the gradient's
norm, the average over machines, the moving average. The hidden matrices come first, so that each optimizer
owns one contiguous part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.errors import CheckpointError
from factordiff.streams import Purpose, uniform

Weights = dict[str, Tensor]

ALIGNMENT = 8  # elements: every tensor starts on 16 bytes in bfloat16, which fast kernels need


@dataclass(frozen=True)
class Slot:
    """One named tensor: its shape, its initial law (normal), and the hidden matrices it holds, if any.

    `mean` is one number, or one for each row of the tensor.
    `matrices` is (count, rows, columns): a kernel [out, in, 3, 3] is (1, out, 9 in) and stacked query, key and
    value projections are three matrices. None: an embedding, a head, a gain: not a hidden matrix.
    """

    shape: tuple[int, ...]
    std: float = 0.0
    mean: float | tuple[float, ...] = 0.0
    matrices: tuple[int, int, int] | None = None

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def linear(outputs: int, inputs: int, *, zero: bool = False) -> Slot:
    """A hidden matrix [outputs, inputs] that keeps the scale of its input, or zero."""
    return Slot((outputs, inputs), 0.0 if zero else inputs**-0.5, matrices=(1, outputs, inputs))


def convolution(outputs: int, inputs: int, *, zero: bool = False) -> Slot:
    """A hidden 3x3 kernel, which is a matrix of `outputs` rows to the optimizer."""
    std = 0.0 if zero else (9 * inputs) ** -0.5
    return Slot((outputs, inputs, 3, 3), std, matrices=(1, outputs, 9 * inputs))


class Layout:
    """Where each named tensor lies in the vector: hidden matrices first, then the rest."""

    def __init__(self, slots: dict[str, Slot]) -> None:
        hidden = [name for name, slot in slots.items() if slot.matrices is not None]
        other = [name for name, slot in slots.items() if slot.matrices is None]
        self.slots = {name: slots[name] for name in hidden + other}
        self.offsets: dict[str, int] = {}
        self.hidden = 0
        end = 0
        for name, slot in self.slots.items():
            self.offsets[name] = end
            end += -(-slot.size // ALIGNMENT) * ALIGNMENT
            if slot.matrices is not None:
                self.hidden = end
        self.size = end

    @property
    def count(self) -> int:
        """How many parameters there are (the alignment's gaps are not parameters)."""
        return sum(slot.size for slot in self.slots.values())

    def unpack(self, vector: Float[Tensor, " parameter"]) -> Weights:
        """The named tensors of a vector, as views; the gradient of all of them is one concatenation."""
        ends = [*list(self.offsets.values())[1:], self.size]
        pieces = vector.split([end - start for start, end in zip(self.offsets.values(), ends, strict=True)])
        return {
            name: (piece if piece.numel() == slot.size else piece[: slot.size]).view(slot.shape)
            for (name, slot), piece in zip(self.slots.items(), pieces, strict=True)
        }

    def pack(self, weights: Weights) -> Float[Tensor, " parameter"]:
        """The vector of the named tensors; names and shapes must be exactly the layout's."""
        if weights.keys() != self.slots.keys():
            missing = sorted(self.slots.keys() - weights.keys())
            unknown = sorted(weights.keys() - self.slots.keys())
            raise CheckpointError(
                f"weights: the names do not match the configuration (missing: {missing}; unknown: {unknown}); "
                "were they saved with another config.json?"
            )
        vector = self.zero()
        for name, slot in self.slots.items():
            if tuple(weights[name].shape) != slot.shape:
                raise CheckpointError(
                    f"weights: {name} has shape {tuple(weights[name].shape)}, expected {slot.shape}; "
                    "were they saved with another config.json?"
                )
            start = self.offsets[name]
            vector[start : start + slot.size] = weights[name].reshape(-1).float()
        return vector

    def zero(self) -> Float[Tensor, " parameter"]:
        """A vector of zeros."""
        return torch.zeros(self.size)

    def initial(self, seed: int) -> Float[Tensor, " parameter"]:
        """The initial vector: normal numbers from the counter-based stream, the same on every machine."""
        vector = self.zero()
        for index, (name, slot) in enumerate(self.slots.items()):
            start = self.offsets[name]
            part = vector[start : start + slot.size]
            rows = torch.tensor(slot.mean).view(-1, *(1,) * (len(slot.shape) - 1))
            part.view(slot.shape).copy_(rows.expand(slot.shape))
            if slot.std > 0.0:
                # 2u - 1 is exactly -1 for u = 0, where erfinv is infinite: half a step inwards.
                u = uniform(seed, Purpose.INIT, index, torch.arange(slot.size)) + 2.0**-54
                part += (torch.erfinv(2.0 * u - 1.0) * (math.sqrt(2.0) * slot.std)).float()
        return vector
