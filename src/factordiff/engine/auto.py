"""Which engine pays, chosen for each request by where it runs and how large it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.cuda_graph_step import recorded_window
from factordiff.engine.engine import Engine
from factordiff.engine.expert_batch import part_of
from factordiff.engine.threads import threads_for
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.sampling.request import check_condition
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.samples import Samples
from factordiff.types import LARGE

CPU_ROWS = 32  # more save calls, but what passes compute on the way no longer fits the cache
THREAD_ROWS = 16  # rows in flight of a thread that has its own
FEWEST = 8  # rows that are worth a thread
GPU_ROWS = 1_100
# Compiling and recording two experts takes the better part of a minute, in which plain passes answer about this many.
COMPILE_FROM = 20_000
# Beside two models of 8B, rows of 256 cells in blocks of 32, a recorded step took 20.2 ms and a plain one 27.0 for one
# row, whose passes wait for the processor; 108.7 and 107.6 ms for eight rows, whose passes wait for the GPU.
LAUNCHED_CELLS = 1_024
# A recorded step asks about all cells of its window, or of the rows, a plain one about the candidates alone: beside the
# same models recording paid where that was 0.26 GB of one row.
RECORDED_BYTES = 2**29


@dataclass(frozen=True)
class AutoEngine:
    """Batches of a fixed number of rows everywhere; on a GPU compiled and recorded steps where they pay.

    `compiled` says by hand whether they do. On a CPU experts that may be asked so have as many threads, each with rows
    of its own, as torch would take.
    """

    compiled: bool | None = None

    def pays(self, device: torch.device, rows: int) -> bool:
        """Whether to compile and record for so many rows on that device."""
        return device.type == "cuda" and rows >= COMPILE_FROM if self.compiled is None else self.compiled

    def chosen(
        self, experts: Sequence[Expert], device: torch.device, rows: int, particles: int = 1
    ) -> Engine:
        """The engine for so many rows (items x particles) on that device."""
        # Particles of an item mostly agree, and equal states are asked once.
        in_flight = GPU_ROWS * min(particles, 4) if device.type == "cuda" else CPU_ROWS
        if self.pays(device, rows):
            graphs = device.type == "cuda"
            return Engine(BatchSizes.for_graphs(max(in_flight, particles)), compiled=True, cuda_graph=graphs)
        threads = threads_for(experts, device, min(torch.get_num_threads(), rows // FEWEST))
        if threads > 1:
            return Engine(BatchSizes(threads * max(THREAD_ROWS, particles)), threads=threads)
        in_flight = max(in_flight, particles)
        return Engine(BatchSizes(in_flight)) if rows > in_flight else Engine()

    def sample(
        self, experts: Any, composition: Any, x_t: Tensor, condition: Any = None, **settings: Any
    ) -> Samples:
        """As `Engine.sample`, by the engine that is chosen."""
        particles = settings.get("particles", 1)
        # A trace shows all items side by side, and a condition that cannot be cut into items goes to all at once.
        whole = settings.get("trace", False) or not _in_items(condition, len(x_t))
        rows, rule = len(x_t) * particles, settings.get("reveal") or ByConfidence()
        if whole:
            engine = Engine()
        elif (
            self.compiled is None
            and x_t.is_cuda
            and launching_decides(experts, composition, rule, rows, x_t.shape[-1])
        ):
            engine = Engine(rows, cuda_graph=True)
        else:
            engine = self.chosen(experts, x_t.device, rows, particles)
        return engine.sample(experts, composition, x_t, condition, **settings)


def launching_decides(
    experts: Sequence[Expert], composition: Composition, rule: RevealRule, rows: int, cells: int
) -> bool:
    """Whether composing what is asked about a large vocabulary takes less time than telling the GPU to."""
    values = experts[0].vocabulary.size
    window = recorded_window(rule, composition, values, cells)
    asked = rows * (cells if window is None else window.width)
    few = rows * cells <= LAUNCHED_CELLS and len(experts) * asked * values * 4 <= RECORDED_BYTES
    return values > LARGE and few


def _in_items(condition: Any, items: int) -> bool:
    """Whether a condition can be cut into items."""
    try:
        check_condition(condition, items)
        part_of(condition, torch.zeros(min(items, 2), dtype=torch.int64))
    except InvalidInput:
        return False
    return True
