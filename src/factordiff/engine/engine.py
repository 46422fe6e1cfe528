"""The one object behind which all speed lies: the sampling loop with fewer, larger and faster passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.checked import in_words
from factordiff.engine.cuda_graph_step import CudaGraphStep
from factordiff.engine.expert_batch import ExpertBatch, part_of
from factordiff.engine.fast_network import fast_form
from factordiff.engine.progress import FilledCells
from factordiff.engine.queue import Queue, in_order
from factordiff.engine.threads import GoOn, side_by_side, threads_for
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.top_k import KEPT
from factordiff.networks.network import Network
from factordiff.sampling.particles import RESAMPLING
from factordiff.sampling.request import Selection, check_condition, check_request, check_trace
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.samples import Passes, Samples
from factordiff.sampling.step import step
from factordiff.sampling.trace import Trace
from factordiff.schema.values import Whole
from factordiff.state import SamplerState
from factordiff.tensors import Numbers, as_tensor


@dataclass(frozen=True)
class Engine:
    """How passes are saved and put together; no setting but `top_k` changes a result.

    `batch` is how many rows (items x particles) are in flight at once: finished items make room for waiting ones, in
    batches of few fixed sizes (`BatchSizes`; a number stands for its fixed sizes; None: all at once). `share` asks
    once about what particles of an item have in common. `compiled` runs those experts that are networks of ours as
    `FastNetwork`, which pays in long runs on a GPU; what was compiled is kept with the network. `cuda_graph` records
    the steps of a full batch on a GPU and replays each as one piece, with a kernel of our own for the doubts, whose
    last bit may differ: that pays in long runs, too. What composition and rule decide in Python must then not depend
    on numbers (`RevealRule.steady`); `Samples.how` says what became of it.

    On a CPU `threads` cut a request into as many parts, each with rows and arithmetic of its own: quicker than threads
    that share every operation, and not held up where a processor is busy. Only for experts that say
    `thread_safe = True`, as the networks here do; a trace, or what is compiled, is made in one part.

    Of large vocabularies (more than 1,024 values) `chunk` bytes of log-probabilities are composed at a time (None: as
    many as the device works on best). `top_k` alone changes results: only the k likeliest values of each expert are
    kept, with a remainder that the others share (`experts.top_k.TopK` says how far that may be off), and the logits of
    one expert are held at a time.
    """

    batch: BatchSizes | int | None = None
    share: bool = True
    compiled: bool = False
    cuda_graph: bool = False
    threads: int = 1
    chunk: int | None = None
    top_k: int | None = None

    def __post_init__(self) -> None:
        Whole(1).read(self.threads, "threads")
        whole = isinstance(self.chunk, int) and not isinstance(self.chunk, bool)
        if self.chunk is not None and not (whole and self.chunk >= 1):
            raise InvalidInput(f"chunk: expected a number of bytes, 1 or more, got {self.chunk!r}")
        if self.top_k is not None:
            KEPT.read(self.top_k, "top_k")

    def asked(self, experts: Sequence[Expert]) -> list[Expert]:
        """The experts as this engine asks them."""
        return [fast_form(one) if self.compiled and isinstance(one, Network) else one for one in experts]

    @torch.no_grad()
    def prepare(self, experts: Sequence[Expert], x_t: Int[Tensor, "item cell"], condition: Any) -> None:
        """Compile and record every batch size that will come, so that what follows is not held up."""
        sizes = BatchSizes.fixed(self.batch) if isinstance(self.batch, int) else self.batch
        for size in () if sizes is None else sizes.sizes or (min(sizes.rows, len(x_t)),):
            item = torch.arange(size, device=x_t.device) % len(x_t)
            for expert in self.asked(experts):
                expert.log_probs(x_t[item], expert.encode(part_of(condition, item)))

    @torch.no_grad()
    def sample(
        self,
        experts: Sequence[Expert],
        composition: Composition,
        x_t: Int[Tensor, "item cell"] | Numbers,
        condition: Any = None,
        *,
        reveal: RevealRule | None = None,
        temperature: float = 0.0,
        particles: int = 1,
        selection: Selection = "draw",
        resampling: float = RESAMPLING,
        seed: int = 0,
        items: Int[Tensor, " item"] | Numbers | None = None,
        trace: bool = False,
        on_step: Callable[[int, int], None] | None = None,
    ) -> Samples:
        """As `sampling.sampler.sample`, whose arguments these are."""
        x_t, items = as_tensor("x_t", x_t), None if items is None else as_tensor("items", items)
        experts, rule, sizes = self.asked(experts), reveal or ByConfidence(), self.batch
        sizes = BatchSizes.fixed(sizes) if isinstance(sizes, int) else sizes
        if sizes is None and self.threads > 1 and not trace:
            sizes = BatchSizes(max(len(x_t), 1) * particles)  # all at once, and yet in parts
        slots = len(x_t) if sizes is None else min(sizes.slots(particles), len(x_t))
        check_request(
            experts, composition, rule, x_t, temperature, particles, selection, resampling, seed, items,
            rows=slots * particles if sizes is None else sizes.filled(slots * particles),
        )  # fmt: skip
        if sizes is not None:
            check_condition(condition, len(x_t))
        if trace:
            check_trace(len(x_t), slots)
        mask, window = experts[0].vocabulary.mask, rule.window(x_t.shape[1])
        leaving = sizes is not None and not trace
        parts = 1 if trace or self.compiled else threads_for(experts, x_t.device, min(self.threads, slots))
        passes = Passes(len(x_t), x_t.device)
        filled = FilledCells(on_step, particles * int((x_t == mask).sum()))
        story = Trace(mask, x_t.tolist()) if trace else None

        def decode(part: int, go_on: GoOn) -> Decoded:
            batch = ExpertBatch(experts, condition, sizes, self.share, particles, self.chunk, self.top_k)
            mine = torch.arange(part, len(x_t), parts, device=x_t.device)
            queue = Queue(
                x_t, items, mine, batch, -(-slots // parts), leaving, mask=mask, seed=int(seed), repairs=rule.repairs,
                most=None if window is None else window.most,
            )  # fmt: skip
            graph = CudaGraphStep(queue, composition, rule, temperature) if self.cuda_graph else None
            state = queue.begin()
            while len(state):
                go_on()
                if graph is not None and graph.takes(state):
                    state = graph.step(state)
                    passes.add(state.item, len(experts), len(experts))
                else:
                    state, info = step(
                        state, batch, composition, rule, temperature=temperature, resampling=resampling
                    )
                    passes.count(info)
                    if story is not None:
                        story.record(info)
                if on_step is not None:
                    filled.tell(part, queue.filled(state))
                state = queue.exchange(state)
            batch.errors.check()
            how = "" if graph is None else in_words(graph.how, graph.failure)
            return Decoded(queue.finished(), batch.padded_passes, how)

        done = side_by_side(decode, parts)
        state, padded = in_order([one.state for one in done]), sum(one.padded_passes for one in done)
        return Samples.of(state, composition, selection, passes, story, padded, done[0].how)


class Decoded(NamedTuple):
    """One part of a request: its items as they finished, and what that took."""

    state: SamplerState
    padded_passes: int
    how: str
