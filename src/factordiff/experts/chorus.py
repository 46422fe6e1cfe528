"""Networks of one architecture in one pass: their weights lie side by side, every product is taken for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert, rebuilt, substitute, tensors_of
from factordiff.experts.parameters import Weights
from factordiff.experts.refinement import Network
from factordiff.types import CellLogProbs, Spoken, Tokens
from factordiff.vocabulary import Vocabulary


class Chorus:
    """Several frozen networks that are asked together and answer one by one, in the order given.

    To the sampler it is one expert with several voices. It saves no arithmetic, so it can pay only where a pass is too
    small to fill the machine.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        if not networks:
            raise InvalidInput("networks: expected at least one network, got none")
        first = networks[0]
        if not first.stackable:
            raise InvalidInput(f"networks: those of a {type(first).__name__} cannot be asked in one pass")
        for other in networks:
            if not alike(first, other):
                raise InvalidInput(
                    f"networks: expected frozen networks of one architecture, got {first!r} and {other!r}"
                )
        self.networks, self.voices = tuple(networks), len(networks)
        ready = [network.ready() for network in networks]
        self._weights = {name: torch.stack([one[name] for one in ready]) for name in ready[0]}

    @property
    def vocabulary(self) -> Vocabulary:
        """The values they speak about."""
        return self.networks[0].vocabulary

    def __repr__(self) -> str:
        return f"Chorus({self.voices} x {self.networks[0]!r})"

    def encode(self, condition: Condition) -> tuple[Any, ...]:
        """What each network was told."""
        return tuple(network.encode(condition) for network in self.networks)

    def log_probs(self, x_t: Tokens, encoded: tuple[Any, ...]) -> Spoken:
        """What each network says: the log-probabilities of `Network.log_probs`, with one more axis."""

        def one(weights: Weights, told: list[Tensor]) -> CellLogProbs:
            return self.networks[0].logits(weights, x_t, rebuilt(encoded[0], iter(told)))

        told = [torch.stack(parts) for parts in zip(*map(tensors_of, encoded), strict=True)]
        # On a CPU torch would fall back to attending for one network after the other, and warn.
        plain = sdpa_kernel(SDPBackend.MATH) if x_t.device.type == "cpu" else nullcontext()
        with plain:
            logits = torch.vmap(one)(self._weights, told)
        return torch.stack([substitute(said, x_t, self.vocabulary) for said in logits], 1)


def together(experts: Sequence[Expert]) -> list[Expert]:
    """The experts in the same order, neighbours of one architecture as a chorus."""
    groups: list[list[Expert]] = []
    for expert in experts:
        if groups and isinstance(expert, Network) and alike(groups[-1][-1], expert):
            groups[-1].append(expert)
        else:
            groups.append([expert])
    return [group[0] if len(group) == 1 else Chorus(group) for group in groups]  # type: ignore[arg-type]


def alike(one: Any, other: Any) -> bool:
    """Whether two experts are frozen networks that differ in their weights alone."""
    if not (isinstance(one, Network) and type(one) is type(other)):
        return False
    if not (one.stackable and one.frozen and other.frozen):
        return False
    ways = [(net.config, net.cycles, net.dtype, net.vector.device, net.fused) for net in (one, other)]
    return ways[0] == ways[1]
