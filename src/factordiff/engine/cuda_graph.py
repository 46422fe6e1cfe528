"""A function of tensors, recorded once as a CUDA graph and replayed: no operation waits for Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from factordiff.experts.expert import rebuilt, tensors_of

WARM_UP = 3  # calls before the recording: they compile, and choose kernels


class CudaGraph:
    """A function at one set of shapes, with its own inputs and outputs.

    It must do the same operations whatever its numbers are: what depends on them in Python is frozen.
    """

    def __init__(self, function: Callable[..., Any], *given: Any) -> None:
        self._inputs = [part.clone() for part in tensors_of(given)]
        inside = rebuilt(given, iter(self._inputs))
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                function(*inside)
        torch.cuda.current_stream().wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=_pool(self._inputs[0].device)[0]):
            self._output = function(*inside)

    def __call__(self, *given: Any) -> Any:
        """What the function gives for other numbers of the same shapes."""
        for inside, outside in zip(self._inputs, tensors_of(given), strict=True):
            inside.copy_(outside)
        self._graph.replay()
        return rebuilt(self._output, iter([part.clone() for part in tensors_of(self._output)]))


@cache
def _pool(device: torch.device) -> tuple[Any, torch.cuda.CUDAGraph]:
    """The memory that all graphs on a device work in: one runs at a time, and what it found is copied out at once.

    With it comes a graph that lives as long: a pool whose last graph is gone cannot be used again.
    """
    pool, anchor = torch.cuda.graph_pool_handle(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(anchor, pool=pool):
        torch.zeros(1, device=device)
    return pool, anchor
