"""The two sides of every comparison: the straightforward loop, and ours with everything on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.bench.divergence import RecordingRule, Trajectory
from factordiff.composition.confidence import log_doubt
from factordiff.composition.routing import Routing
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.experts.expert import Expert
from factordiff.networks.network import Network
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.samples import Samples
from factordiff.state import SamplerState


@dataclass(frozen=True)
class Bench:
    """Two experts, the queries to answer, and how."""

    networks: Sequence[Network]
    queries: EvaluationSet
    rule: RevealRule
    batch: int  # rows in flight
    slow: int  # queries that the slow side answers
    fkc: int  # queries that particles answer; 0 for none
    repeats: int = 5
    steps: int = 128  # of the straightforward loop: the paper's

    @property
    def device(self) -> torch.device:
        """Where the experts are."""
        return self.queries.queries.device

    @property
    def sizes(self) -> BatchSizes:
        """Few sizes on a GPU, where each is recorded; no padding elsewhere."""
        return BatchSizes.for_graphs(self.batch) if self.device.type == "cuda" else BatchSizes(self.batch)

    def first(self, count: int) -> Bench:
        """The same for fewer queries."""
        return replace(self, queries=self.queries.first(count))


def fast(bench: Bench, experts: Sequence[Expert], rule: RevealRule | None = None) -> Samples:
    """Per-pixel routing with everything on."""
    engine = Engine(bench.sizes, cuda_graph=bench.device.type == "cuda")
    return engine.sample(
        experts, Routing(), blank(bench), bench.queries.condition(), reveal=rule or bench.rule
    )


def noted(bench: Bench, experts: Sequence[Expert], *, saving: bool) -> Trajectory:
    """The straightforward loop as `sample` runs it: with every exact saving, or with none in batches of another size.

    All rows of this loop go in step, so batches of one size would round alike with savings and without.
    """
    batch, rule = bench.sizes, ByConfidence(bench.steps)
    if not saving:
        fewer = batch.sizes[-2] if len(batch.sizes) > 1 else max(1, 3 * batch.rows // 4)
        batch = BatchSizes(fewer, tuple(size for size in batch.sizes if size <= fewer))
    start = blank(bench)
    notes = RecordingRule(rule, len(start), start.shape[1], start.device)
    engine = Engine(batch, share=saving)
    samples = engine.sample(experts, Routing(), start, bench.queries.condition(), reveal=notes)
    return Trajectory(samples.x_0, notes.step)


@torch.no_grad()
def straightforward(bench: Bench) -> Trajectory:
    """The loop as one would first write it, with the context encoded once: every expert, every row, every step."""
    steps = bench.steps
    answers, noted, mask = [], [], bench.networks[0].vocabulary.mask
    routing = Routing()
    for first in range(0, len(bench.queries), bench.batch):
        rows = slice(first, first + bench.batch)
        condition = bench.queries.condition(rows)
        x_t = torch.full_like(condition.query, mask)
        encoded = [network.encode(condition) for network in bench.networks]
        cells = x_t.shape[1]
        revealed = torch.full_like(x_t, steps)
        for step in range(steps):
            told = zip(bench.networks, encoded, strict=True)
            log_probs = torch.stack([network.log_probs(x_t, one) for network, one in told])
            composed = routing(log_probs, SamplerState.begin(x_t, mask, len(bench.networks))).log_probs
            quota = cells * (step + 1) // steps - cells * step // steps
            doubt = torch.where(x_t == mask, log_doubt(composed), torch.inf)
            surest = doubt.argsort(dim=-1, stable=True)[:, :quota]
            x_t = x_t.scatter(1, surest, composed.argmax(-1).gather(1, surest))
            revealed = revealed.scatter(1, surest, step)
        answers.append(x_t)
        noted.append(revealed)
    return Trajectory(torch.cat(answers), torch.cat(noted))


def timed(device: torch.device, action: Callable[[], Any]) -> tuple[Any, float, int]:
    """What the action gives, its seconds, and (on a GPU) the most memory in use."""
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    result = action()
    if cuda:
        torch.cuda.synchronize()
    return result, time.perf_counter() - begun, torch.cuda.max_memory_allocated() if cuda else 0


def median(bench: Bench, action: Callable[[], float]) -> float:
    """The median of several, after one that does not count."""
    action()
    return float(np.median([action() for _ in range(bench.repeats)]))


def blank(bench: Bench) -> Int[Tensor, "item cell"]:
    """Every cell of every query masked."""
    return torch.full_like(bench.queries.x_0, bench.networks[0].vocabulary.mask)
