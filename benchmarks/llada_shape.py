"""A bidirectional transformer of LLaDA's sizes in plain torch, its weights drawn: time does not depend on them.

LLaDA-8B: 32 layers, 4,096 wide, 32 heads, SwiGLU of 12,288, rotary positions, root-mean-square norms, 126,464 tokens of
which 126,336 is the mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from factordiff import Vocabulary


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; `mask` is the mask token's id, inside the vocabulary."""

    layers: int
    width: int
    heads: int
    inner: int
    tokens: int
    mask: int


SHAPES = {
    "llada-8b": Shape(32, 4096, 32, 12_288, 126_464, 126_336),
    "tiny": Shape(2, 64, 4, 128, 2_000, 1_990),
}


class LladaShaped:
    """An expert of that shape: values are its tokens, and the mask token is never emitted."""

    def __init__(self, shape: Shape, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.shape, self.vocabulary = shape, Vocabulary(shape.tokens)
        generator = torch.Generator(device).manual_seed(seed)

        def drawn(*size: int) -> Tensor:
            weights = torch.empty(size, device=device, dtype=dtype)
            return weights.normal_(std=size[-1] ** -0.5, generator=generator)

        width, inner = shape.width, shape.inner
        self.embed, self.head = drawn(shape.tokens, width), drawn(shape.tokens, width)
        self.layers = [
            {"qkv": drawn(3 * width, width), "out": drawn(width, width), "up": drawn(2 * inner, width),
             "down": drawn(width, inner)}
            for _ in range(shape.layers)
        ]  # fmt: skip

    @property
    def parameters(self) -> int:
        """How many weights it has."""
        return sum(
            w.numel() for w in (self.embed, self.head, *(w for layer in self.layers for w in layer.values()))
        )

    def encode(self, condition: Any) -> None:
        return None

    def hidden(self, x_t: Tensor) -> Tensor:
        """The last layer's output at every position."""
        batch, positions = x_t.shape
        width, heads = self.shape.width, self.shape.heads
        h = self.embed[torch.where(x_t == self.vocabulary.mask, self.shape.mask, x_t)]
        angles = torch.arange(positions, device=h.device)[:, None] * 500_000.0 ** -torch.linspace(
            0, 1, width // heads // 2, device=h.device
        )
        turn = torch.cat([angles, angles], -1)
        cos, sin = turn.cos().to(h.dtype), turn.sin().to(h.dtype)

        def rotated(part: Tensor) -> Tensor:
            one, other = part.chunk(2, -1)
            return part * cos + torch.cat([-other, one], -1) * sin

        for layer in self.layers:
            q, k, v = (
                part.view(batch, positions, heads, -1).transpose(1, 2)
                for part in functional.linear(functional.rms_norm(h, (width,)), layer["qkv"]).chunk(3, -1)
            )
            mixed = functional.scaled_dot_product_attention(rotated(q), rotated(k), v)
            h = h + functional.linear(mixed.transpose(1, 2).reshape(batch, positions, width), layer["out"])
            gate, up = functional.linear(functional.rms_norm(h, (width,)), layer["up"]).chunk(2, -1)
            h = h + functional.linear(functional.silu(gate) * up, layer["down"])
        return functional.rms_norm(h, (width,))

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        """At every position."""
        every = torch.arange(x_t.numel(), device=x_t.device)
        return self.log_probs_at_places(x_t, encoded, every).view(*x_t.shape, -1)

    def log_probs_at(self, x_t: Tensor, encoded: Any, cells: Tensor) -> Tensor:
        """At some positions: the output layer there alone. They are looked up first, so that nothing waits later."""
        return self.log_probs_at_places(x_t, encoded, cells.flatten().nonzero().squeeze(-1))

    def log_probs_at_places(self, x_t: Tensor, encoded: Any, places: Tensor) -> Tensor:
        """The same by their numbers in reading order: nothing waits."""
        logits = functional.linear(self.hidden(x_t).flatten(0, 1)[places], self.head).float()
        logits[:, self.shape.mask] = -torch.inf
        return torch.log_softmax(logits, dim=-1)
