"""Networks at full speed: compiled parts, one recorded graph for each batch size, all held against the plain ones."""

from __future__ import annotations

import copy
from typing import Any

import torch

from factordiff.engine.checked import CheckedFastPath, disagreement
from factordiff.engine.cuda_graph import CudaGraph
from factordiff.errors import InvalidInput, Unavailable
from factordiff.networks.network import Network
from factordiff.types import CellLogProbs, Tokens

VERSIONS = 128
# On a GPU torch 2.11 spoils some rows of a mean over demonstrations that a layer norm follows, others in every process:
# a comparison at the first call clears nothing. This part is short and runs once for each item.
NEVER_COMPILED = ("encode_with",)


class FastNetwork:
    """An expert around a frozen network: the same function, run in another way.

    `compile` lets torch compile the network's parts: for the first batch size it sees, and once more for all others.
    `graphs` records each size's pass as a CUDA graph and replays it, so that no kernel waits for Python: give the loop
    a `BatchSizes` of few sizes. By default both are done on a CUDA device, with attention in our own kernel for numbers
    of 16 bits (its products need tensor cores), and neither elsewhere. At every new size the faster passes are
    compared with the plain ones; one that fails or differs by more than rounding is given up for a slower one, and
    `failure` says why.
    """

    def __init__(self, network: Network, *, compile: bool | None = None, graphs: bool | None = None) -> None:
        self.network = copy.copy(network)  # shares its weights; the other's parts stay as they are
        self.vocabulary = network.vocabulary
        cuda = network.vector.is_cuda
        if graphs and not cuda:
            raise Unavailable(
                "graphs: expected a network on a CUDA device; move it there or leave graphs out"
            )
        self._verified: list[CheckedFastPath] = []
        self._graphs: dict[tuple[int, ...], CudaGraph] | None = (
            {} if graphs or (graphs is None and cuda) else None
        )
        self._graph_failure: str | None = None
        if cuda if compile is None else compile:
            self._compile(network.parts, kernel=cuda and network.dtype.itemsize == 2)

    def _compile(self, plain: Any, kernel: bool) -> None:
        import torch._dynamo.config as dynamo  # takes a second that eager passes need not spend

        # Networks of one kind share their code, and each has versions of it.
        dynamo.recompile_limit = max(dynamo.recompile_limit, VERSIONS)
        self.network.fused = kernel
        self.network.parts = own = self.network.own_parts()
        self.network.compile_parts(dynamic=None)
        for name, slow, compiled, with_kernel in zip(
            plain._fields, plain, self.network.parts, own, strict=True
        ):
            faster = {"compiled": compiled, **({"kernel": with_kernel} if kernel else {})}
            ways = {} if name in NEVER_COMPILED else faster
            self._verified.append(CheckedFastPath(name, slow, ways, self.network.dtype))
        self.network.parts = type(plain)(*self._verified)

    @property
    def failure(self) -> str | None:
        """What is run in the plain way, and why; None where all is well."""
        reasons = [part.failure for part in self._verified] + [self._graph_failure]
        return "; ".join(reason for reason in reasons if reason is not None) or None

    @property
    def how(self) -> str:
        """How passes are run: for people to read."""
        ways = list(dict.fromkeys(part.way for part in self._verified if part.way != "plain"))
        return " + ".join(ways + (["graphs"] if self._graphs is not None else [])) or "eager"

    def __repr__(self) -> str:
        return f"FastNetwork({type(self.network).__name__}, {self.how})"

    def encode(self, condition: Any) -> Any:
        """The network's own encoding."""
        return self.network.encode(condition)

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """The network's log-probabilities, in float32."""
        if self._graphs is None:
            return self.network.log_probs(x_t, encoded)
        if x_t.shape in self._graphs:
            return self._graphs[x_t.shape](x_t, encoded)
        expected = self.network.log_probs(x_t, encoded)
        try:
            graph = CudaGraph(self.network.log_probs, x_t, encoded)
            found = graph(x_t, encoded)
        except Exception as error:
            if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                raise
            self._graphs, self._graph_failure = None, f"graph: {type(error).__name__}: {error}"
            return expected
        self._graph_failure = disagreement("graph", found.exp(), expected.exp(), self.network.dtype)
        if self._graph_failure is not None:
            self._graphs = None
            return expected
        self._graphs[x_t.shape] = graph
        return found


def fast_form(network: Network) -> FastNetwork:
    """The network at full speed, made once and kept with it."""
    if network.fast is None:
        network.fast = FastNetwork(network)
    assert isinstance(network.fast, FastNetwork)
    return network.fast
