"""A network that can be trained and then frozen into an expert: its weights are one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from factordiff.errors import InvalidInput
from factordiff.experts.expert import substitute
from factordiff.networks.config import NetworkConfig
from factordiff.networks.parameters import Layout, Weights
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

Parts = tuple[Callable[..., Any], ...]  # a named tuple of each family's own


class Network(nn.Module, ABC):
    """A denoiser: an `Expert` whose weights are one vector.

    Its parts are pure functions of (weights, tensors), as they are written or compiled. `weights` casts and lays out
    the vector once per training step; `freeze` does it once for all. A network without a seed is all zeros: its weights
    are about to be loaded.
    """

    thread_safe = True

    def __init__(self, config: NetworkConfig, seed: int | None) -> None:
        super().__init__()
        self.config = config
        self.layout = Layout(config.weight_slots())
        self.vocabulary = Vocabulary(config.values)
        self.dtype = torch.float32
        self.fused = False  # whether attention runs in a kernel of our own, which needs a GPU
        self.vector = nn.Parameter(self.layout.zero() if seed is None else self.layout.initial(seed))
        self._frozen: Weights | None = None
        self.fast: Any = (
            None  # its compiled form, once somebody asked for it: `engine.fast_network.fast_form`
        )
        self.parts: Any = self.own_parts()

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

    @abstractmethod
    def own_parts(self) -> Parts:
        """The parts as they are written."""

    @abstractmethod
    def prepare(self, weights: Weights) -> Weights:
        """The weights in the form a pass wants them; runs once per step."""

    @abstractmethod
    def tensors_of_condition(self, condition: Any) -> tuple[Tensor, ...]:
        """What reaches the network of a condition; one that it cannot take is refused."""

    @abstractmethod
    def encode_tensors(self, weights: Weights, *given: Tensor) -> tuple[Any, Any]:
        """What every pass needs to know about an item, and what was read of its condition on the way."""

    def codes(self, weights: Weights, read: Any) -> Float[Tensor, "item frame context"]:
        """What each demonstration says alone: two of one item should agree."""
        raise InvalidInput(f"agreement: {type(self).__name__} reads no demonstrations; leave it 0")

    @abstractmethod
    def logits(self, weights: Weights, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """One pass: logits in float32, one per value."""

    @abstractmethod
    def check_cells(self, cells: int) -> None:
        """Refuse a canvas that it cannot be asked about."""

    def encode(self, condition: Any) -> Any:
        """What `log_probs` needs about each item, computed once."""
        return self.encode_tensors(self.ready(), *self.tensors_of_condition(condition))[0]

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """Normalised log-probabilities at every cell, with SUBS."""
        self.check_cells(x_t.shape[-1])
        return substitute(self.logits(self.ready(), x_t, encoded), x_t, self.vocabulary)

    def weights(self, dtype: torch.dtype | None = None) -> Weights:
        """All weights, cast once and laid out for the passes; gradients flow back to the vector."""
        return self.prepare(self.layout.unpack(self.vector.to(dtype or self.dtype)))

    def freeze(self, dtype: torch.dtype | None = None) -> Network:
        """Fix the weights: they are cast and laid out now, and no gradient is kept."""
        self.dtype = dtype or self.dtype
        self.vector.requires_grad_(False)
        self._frozen = self.weights()
        return self

    @property
    def frozen(self) -> bool:
        """Whether its weights are fixed."""
        return self._frozen is not None

    def ready(self) -> Weights:
        """The weights as passes want them: those laid out when it was frozen, or laid out anew."""
        return self.weights() if self._frozen is None else self._frozen

    def with_cycles(self, outer: int, inner: int) -> Network:
        """The same expert with another number of refinement cycles, if it has any."""
        raise InvalidInput(f"cycles: {type(self).__name__} has no refinement cycles; leave them out")

    def named_weights(self) -> Weights:
        """The stored weights by name, detached: what `save_expert` writes."""
        return self.layout.unpack(self.vector.detach())

    def compile_parts(self, dynamic: bool | None = False, **options: Any) -> None:
        """Compile the parts, each once. `dynamic`: as `torch.compile` has it."""
        import torch._inductor.config as inductor

        # Reductions over rows and columns at once gave gradients full of garbage on a GPU under torch 2.11.
        if hasattr(inductor.triton, "mix_order_reduction"):
            inductor.triton.mix_order_reduction = False
        self.parts = type(self.parts)(
            *(torch.compile(part, dynamic=dynamic, **options) for part in self.parts)
        )

    def state_in_words(self) -> str:
        """Whether it is frozen, its precision and its device: for people to read."""
        state = "trainable" if self._frozen is None else "frozen"
        return f"{state}, {str(self.dtype).removeprefix('torch.')}, {self.vector.device}"
