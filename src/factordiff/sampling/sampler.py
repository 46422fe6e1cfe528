"""The only loop: draw from a composition of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.experts.expert import Expert
from factordiff.experts.forward import Forward
from factordiff.sampling.particles import RESAMPLING
from factordiff.sampling.request import Selection, check_request
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.samples import Passes, Samples
from factordiff.sampling.step import step
from factordiff.sampling.trace import Trace
from factordiff.state import SamplerState
from factordiff.tensors import Numbers, as_tensor


@torch.no_grad()
def sample(
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
    """Fill the masked cells of every item; given cells stay as they are.

    `temperature` 0 takes the likeliest value, above 0 draws from r^(1/temperature). A composition with a
    target (`feynman_kac`, `rne`) weights its particles and resamples them when their effective size falls
    below the share `resampling` of them (0: never; 1: after every step). `selection` says which particle is the
    answer: one drawn by weight, the one of highest target, a vote cell by cell, or the first. `items` are the ids
    that random numbers belong to (default 0, 1, ...): an item draws the same numbers alone, in any batch and on any
    device. `on_step(done, total)` is told how many cells are filled. `Engine.sample` is the same with fewer and
    faster passes.
    """
    if not isinstance(x_t, Tensor) or x_t.dtype != torch.int64:
        x_t = as_tensor("x_t", x_t)
    items = None if items is None else as_tensor("items", items)
    rule = reveal or ByConfidence()
    check_request(experts, composition, rule, x_t, temperature, particles, selection, resampling, seed, items)
    mask, again = experts[0].vocabulary.mask, rule.repairs
    state = SamplerState.begin(
        x_t, mask, len(experts), particles=particles, seed=int(seed), ids=items, repairs=again
    )
    forward, passes = Forward(experts, condition, len(x_t)), Passes(len(x_t), x_t.device)
    story, total = Trace(mask, x_t.tolist()) if trace else None, int(state.masked.sum())
    while state.masked.any():
        state, info = step(state, forward, composition, rule, temperature=temperature, resampling=resampling)
        passes.count(info)
        if story is not None:
            story.record(info)
        if on_step is not None:
            on_step(total - int(state.masked.sum()), total)
    forward.errors.check()
    return Samples.of(state, composition, selection, passes, story)
