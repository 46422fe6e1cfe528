r"""The loop that both backbones share, and the expert around it.

h = embedded input; H times { L times $z_L \leftarrow f(z_L+z_H+h)$; then $z_H \leftarrow f(z_H+z_L)$ };
the logits are read from $z_H$. Paper: section "Denoising Architecture".
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.experts.conditioning import encode_pairs
from factordiff.experts.config import NetworkConfig
from factordiff.experts.expert import substitute
from factordiff.experts.latents import latent_context, read_latents, with_field
from factordiff.experts.parameters import Layout, Weights
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

State = Float[Tensor, "batch ..."]


class Cycles(NamedTuple):
    """How often the loop turns: `outer` is the paper's H, `inner` its L. Both may be changed after training."""

    outer: int = 2
    inner: int = 2


def refine(f: Callable[[State], State], h: State, z_high: Tensor, z_low: Tensor, cycles: Cycles) -> State:
    r"""Refine the two latent states and return $z_H$.

    `z_high` and `z_low` are the learned initial states, broadcast over rows and cells.
    """
    for _ in range(cycles.outer):
        for _ in range(cycles.inner):
            z_low = f(z_low + z_high + h)
        z_high = f(z_high + z_low)
    return z_high


class Network(nn.Module, ABC):
    """A denoiser with iterative refinement: an `Expert` whose weights are one vector.

    The parts are pure functions of (weights, tensors): `read` and `encode_with` once per item, `embed`,
    `apply_once` (the paper's f) and `readout` once per pass. `weights` casts and lays out the vector once per
    training step; `freeze` does it once for all.
    """

    def __init__(self, config: NetworkConfig, layout: Layout, seed: int) -> None:
        super().__init__()
        self.config = config
        self.layout = layout
        self.vocabulary = Vocabulary(config.values)
        self.cycles = Cycles(*config.cycles)
        self.dtype = torch.float32
        self.fused = False  # whether attention runs in a kernel of our own, which needs a GPU
        self.vector = nn.Parameter(layout.initial(seed))
        self._frozen: Weights | None = None
        self.fast: Any = (
            None  # its compiled form, once somebody asked for one (`engine.fast_network.fast_form`)
        )
        self.parts = self.own_parts()

    def __copy__(self) -> Network:
        """The same weights under other settings."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__, fast=None)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made of the weights: they travel once."""
        return {**self.__dict__, "_frozen": None, "fast": None, "was_frozen": self.frozen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        frozen = state.pop("was_frozen")
        super().__setstate__(state)
        if frozen:
            self.freeze()

    def __repr__(self) -> str:
        height, width = self.config.layout
        return (
            f"{type(self).__name__}({self.layout.count:,} parameters, {height}x{width} cells, "
            f"conditioning={self.config.conditioning!r}, cycles={tuple(self.cycles)}, "
            f"{'trainable' if self._frozen is None else 'frozen'}, "
            f"{str(self.dtype).removeprefix('torch.')}, {self.vector.device})"
        )

    @abstractmethod
    def prepare(self, weights: Weights) -> Weights:
        """The weights in the form a pass wants them; runs once per step."""

    @abstractmethod
    def pair_tokens(
        self,
        weights: Weights,
        inputs: Int[Tensor, "item frame cell"],
        outputs: Int[Tensor, "item frame cell"],
    ) -> Float[Tensor, "pair token channel"]:
        """The tokens of each demonstration, on its own."""

    def read(
        self,
        weights: Weights,
        inputs: Int[Tensor, "item frame cell"],
        outputs: Int[Tensor, "item frame cell"],
    ) -> Float[Tensor, "item frame ..."]:
        """What each demonstration says: latents, or the paper's pair encoding."""
        config = self.config
        if config.conditioning == "paper":
            return encode_pairs(weights, inputs, outputs, config.values, config.layout)
        tokens = self.pair_tokens(weights, inputs, outputs)
        read = read_latents(weights, tokens, config.head_size)
        if config.field:
            read = with_field(read, tokens)
        return read.unflatten(0, tuple(inputs.shape[:2]))

    @abstractmethod
    def encode_with(
        self,
        weights: Weights,
        query: Int[Tensor, "item cell"],
        inputs: Int[Tensor, "item frame cell"],
        outputs: Int[Tensor, "item frame cell"],
        present: Bool[Tensor, "item frame"],
        read: Float[Tensor, "item frame ..."],
    ) -> Any:
        """What every pass needs to know about an item."""

    @abstractmethod
    def embed(self, weights: Weights, x_t: Tokens, encoded: Any) -> State:
        """The embedded input h."""

    @abstractmethod
    def apply_once(self, weights: Weights, state: State, encoded: Any) -> State:
        """One application of the backbone f."""

    @abstractmethod
    def readout(self, weights: Weights, state: State) -> CellLogProbs:
        """Logits in float32, one per value."""

    def weights(self, dtype: torch.dtype | None = None) -> Weights:
        """All weights, cast once and laid out for the passes; gradients flow back to the vector."""
        return self.prepare(self.layout.unpack(self.vector.to(dtype or self.dtype)))

    def logits(self, weights: Weights, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """One pass: embed, refine, read out."""
        h = self.parts.embed(weights, x_t, encoded)
        z_high = refine(
            lambda state: self.parts.apply_once(weights, state, encoded),
            h,
            weights["z_high"],
            weights["z_low"],
            self.cycles,
        )
        return self.parts.readout(weights, z_high)

    def encode(self, condition: Condition) -> Any:
        """What `log_probs` needs about each item, computed once per query."""
        if not isinstance(condition, Condition):
            raise InvalidInput(
                f"condition: expected a Condition (a query and its demonstrations), got {type(condition).__name__}"
            )
        if condition.query.shape[-1] != self.config.cells:
            raise InvalidInput(
                f"condition: expected {self.config.cells} cells (a canvas of {self.config.layout}), "
                f"got {condition.query.shape[-1]}"
            )
        if condition.query.device.type == "cpu":  # elsewhere looking would mean waiting
            condition.check()
        query, inputs, outputs = condition.grids(self.config.sees_sizes)
        weights = self.ready()
        read = self.parts.read(weights, inputs, outputs)
        return self.parts.encode_with(weights, query, inputs, outputs, condition.present, read)

    def codes(
        self, weights: Weights, read: Float[Tensor, "item frame ..."]
    ) -> Float[Tensor, "item frame context"]:
        """The context vector that each demonstration alone would give: two of one item should agree."""
        if self.config.conditioning == "paper":
            return read
        latents = read[:, :, : self.config.latents]
        each = F.layer_norm(latents, (read.shape[-1],)).flatten(0, 1)
        return latent_context(weights, each).unflatten(0, tuple(read.shape[:2]))

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """Normalised log-probabilities at every cell, with SUBS."""
        if x_t.shape[-1] != self.config.cells:
            raise InvalidInput(
                f"x_t: expected {self.config.cells} cells (a canvas of {self.config.layout}), got {x_t.shape[-1]}"
            )
        return substitute(self.logits(self.ready(), x_t, encoded), x_t, self.vocabulary)

    def freeze(self, dtype: torch.dtype | None = None) -> Network:
        """Fix the weights: they are cast and laid out now, and no gradient is kept."""
        self.dtype = dtype or self.dtype
        self.vector.requires_grad_(False)
        self._frozen = self.weights()
        return self

    def with_cycles(self, outer: int, inner: int) -> Network:
        """The same expert with another number of refinement cycles, sharing its weights."""
        if min(outer, inner) < 1:
            raise InvalidInput(f"cycles: expected two whole numbers of at least 1, got {(outer, inner)}")
        other = copy.copy(self)
        other.cycles = Cycles(outer, inner)
        return other

    def named_weights(self) -> Weights:
        """The stored weights by name, detached: what `save_expert` writes."""
        return self.layout.unpack(self.vector.detach())

    def own_parts(self) -> Parts:
        """The parts as they are written."""
        return Parts(self.read, self.encode_with, self.embed, self.apply_once, self.readout)

    def compile_parts(self, dynamic: bool | None = False, **options: Any) -> None:
        """Compile the parts, each once; f is reused for all its applications. `dynamic`: as `torch.compile` has it."""
        import torch._inductor.config as inductor

        # Reductions over rows and columns at once gave gradients full of garbage on a GPU under torch 2.11.
        if hasattr(inductor.triton, "mix_order_reduction"):
            inductor.triton.mix_order_reduction = False
        self.parts = Parts(*(torch.compile(part, dynamic=dynamic, **options) for part in self.parts))

    @property
    def frozen(self) -> bool:
        """Whether its weights are fixed."""
        return self._frozen is not None

    def ready(self) -> Weights:
        """The weights as passes want them: those laid out when it was frozen, or laid out anew."""
        return self.weights() if self._frozen is None else self._frozen


class Parts(NamedTuple):
    """The pure functions of a network, as they are or compiled."""

    read: Callable[..., Tensor]
    encode_with: Callable[..., Any]
    embed: Callable[..., State]
    apply_once: Callable[..., State]
    readout: Callable[..., CellLogProbs]
