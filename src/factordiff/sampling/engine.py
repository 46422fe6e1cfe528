"""Networks at full speed: compiled parts, and one recorded graph for each batch size."""

from __future__ import annotations

import copy
from typing import Any

import torch

from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.expert import rebuilt, tensors_of
from factordiff.experts.refinement import Network
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

VERSIONS = 128
WARM_UP = 3  # passes before a graph is recorded: they compile, and choose kernels


class Engine:
    """An expert around a frozen network: the same function, run in another way.

    `compile` lets torch compile the network's parts, once for every batch size it sees. `graphs` records each
    size's pass as a CUDA graph and replays it, so that no kernel waits for Python. Both are for batches of few fixed
    sizes: give the loop a `Bucket` that has them. By default both are done on a CUDA device and neither elsewhere;
    where compiling fails the passes are eager, and `failure` says why.
    """

    def __init__(self, network: Network, *, compile: bool | None = None, graphs: bool | None = None) -> None:
        self.network = copy.copy(network)  # shares its weights; the other's parts stay as they are
        self._eager = network.parts
        cuda = network.vector.is_cuda
        if graphs and not cuda:
            raise Unavailable(
                "graphs: expected a network on a CUDA device; move it there or leave graphs out"
            )
        self._compiled = cuda if compile is None else compile
        self._graphs: dict[tuple[int, ...], _Graph] | None = (
            {} if graphs or (graphs is None and cuda) else None
        )
        self.failure: str | None = None  # why it went back to eager passes, if it did
        if self._compiled:
            import torch._dynamo.config as dynamo  # takes a second that eager passes need not spend

            # Networks of one kind share their code, and every batch size is a version of it.
            dynamo.recompile_limit = max(dynamo.recompile_limit, VERSIONS)
            self.network.compile_parts()

    @property
    def vocabulary(self) -> Vocabulary:
        """The values it speaks about."""
        return self.network.vocabulary

    @property
    def how(self) -> str:
        """How passes are run: for people to read."""
        ways = (["compiled"] if self._compiled else []) + (["graphs"] if self._graphs is not None else [])
        return " + ".join(ways) or "eager"

    def __repr__(self) -> str:
        return f"Engine({type(self.network).__name__}, {self.how})"

    def encode(self, condition: Any) -> Any:
        """The network's own encoding; falls back to eager parts when they cannot be compiled here."""
        try:
            return self.network.encode(condition)
        except Exception as error:
            self._fall_back(error)
            return self.network.encode(condition)

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The network's log-probabilities, in float32."""
        try:
            if self._graphs is None:
                return self.network.log_probs(x_t, encoded)
            if x_t.shape not in self._graphs:
                self._graphs[x_t.shape] = _Graph(self.network, x_t, encoded)
            return self._graphs[x_t.shape].replay(x_t, encoded)
        except Exception as error:
            self._fall_back(error)
            return self.network.log_probs(x_t, encoded)

    def _fall_back(self, error: Exception) -> None:
        """Go on without compiling and recording; what is wrong with the arguments is raised again."""
        if isinstance(error, InvalidInput | torch.OutOfMemoryError) or not (
            self._compiled or self._graphs is not None
        ):
            raise error
        self.failure = f"{type(error).__name__}: {error}"
        self._compiled, self._graphs = False, None
        self.network.parts = self._eager


class _Graph:
    """One recorded pass at one batch size, with its own inputs and output."""

    def __init__(self, network: Network, x_t: Tokens, encoded: Any) -> None:
        self.inputs = [part.clone() for part in tensors_of((x_t, encoded))]
        inside = rebuilt((x_t, encoded), iter(self.inputs))
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                network.log_probs(*inside)
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = network.log_probs(*inside)

    def replay(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        for inside, outside in zip(self.inputs, tensors_of((x_t, encoded)), strict=True):
            inside.copy_(outside)
        self.graph.replay()
        return self.output.clone()
