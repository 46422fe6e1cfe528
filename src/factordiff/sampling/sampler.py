"""The only loop: draw from a composition of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.experts.expert import Expert, voices
from factordiff.sampling.first_pass import FirstPass
from factordiff.sampling.full_house import FullHouse
from factordiff.sampling.particles import RESAMPLING
from factordiff.sampling.request import (
    Selection,
    check_condition,
    check_memory,
    check_particles,
    check_rule,
    check_seed,
    check_tokens,
    check_trace,
    common_vocabulary,
    item_ids,
)
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.run import Run
from factordiff.sampling.samples import Samples as Samples
from factordiff.sampling.savings import Bucket, Savings
from factordiff.sampling.trace import Trace
from factordiff.sampling.verified import in_words

COPIES = 8  # of a row's log-probabilities that a step may hold at once


@torch.no_grad()
def sample(
    experts: Sequence[Expert],
    composition: Composition,
    x_t: Int[Tensor, "item cell"],
    condition: Any = None,
    *,
    reveal: RevealRule | None = None,
    temperature: float = 0.0,
    particles: int = 1,
    selection: Selection = "draw",
    resampling: float = RESAMPLING,
    seed: int = 0,
    items: Int[Tensor, " item"] | None = None,
    bucket: Bucket | int | None = None,
    savings: Savings | None = None,
    first_pass: FirstPass | None = None,
    fuse: bool = False,
    trace: bool = False,
    on_step: Callable[[int, int], None] | None = None,
) -> Samples:
    """Fill the masked cells of every item; given cells stay as they are.

    `temperature` 0 takes the likeliest value, above 0 draws from r^(1/temperature). A composition with a
    target (`feynman_kac`, `rne`) weights its particles and resamples them when their effective size falls
    below the share `resampling` of them (0: never; 1: after every step). `selection` says which particle is the
    answer: one drawn by weight, the one of highest target, a vote cell by cell, or the first. `items` are the ids
    that random numbers belong to (default 0, 1, ...): an item draws the same numbers alone, in any batch and on any
    device. `on_step(done, total)` is told how many cells are filled.

    What makes it fast changes no result. `bucket` is how many rows (items x particles) are in flight at once;
    finished items make room for waiting ones, in batches of few fixed sizes. `savings` are the passes that are
    not run because their outcome is known; `first_pass` carries the first of them from method to method. `fuse`
    records the steps of a full bucket on a GPU and replays each as one piece, with a kernel of our own for the doubts,
    whose last bit may differ: it pays in long runs, and changes nothing elsewhere. What composition and rule decide
    in Python must then not depend on numbers (`RevealRule.steady`); `Samples.fused` says what became of it.
    """
    vocabulary = common_vocabulary(experts)
    speakers = sum(map(voices, experts))
    beta = composition.target(speakers)
    rule = reveal or ByConfidence()
    check_tokens(x_t, vocabulary)
    check_particles(particles, temperature, selection, beta is not None, resampling)
    check_rule(rule.repairs, beta is not None)
    check_seed(seed)
    ids = item_ids(items, x_t)
    bucket = Bucket.of_fixed_sizes(bucket) if isinstance(bucket, int) else bucket
    places = len(x_t) if bucket is None else min(bucket.places(particles), len(x_t))
    if bucket is not None:
        check_condition(condition, len(x_t))
    if trace:
        check_trace(len(x_t), places)
    row_bytes = 8 * COPIES * speakers * x_t.shape[1] * vocabulary.size
    check_memory(places * particles, row_bytes, x_t.device)

    run = Run(
        experts,
        composition,
        rule,
        x_t,
        condition,
        ids=ids,
        particles=particles,
        seed=seed,
        temperature=temperature,
        resampling=resampling,
        places=places,
        bucket=bucket,
        leaving=bucket is not None and not trace,
        savings=savings or Savings(),
        first_pass=first_pass,
    )
    story = Trace(vocabulary.size, x_t.tolist()) if trace else None
    total = particles * int((x_t == vocabulary.mask).sum())

    full_house = FullHouse(run) if fuse else None
    population = run.begin()
    while len(population):
        if full_house is not None and full_house.takes(population):
            population = full_house.step(population)
        else:
            population, moment, candidates = run.skip_idle(population)
            revealed, event = run.reveal(population, moment, candidates)
            population, event = run.resample(revealed, event)
            if story is not None:
                story.record(event, revealed.step, candidates.any(-1), revealed.x_t, revealed.log_w)
            population = run.tick(run.repair(population))
        if on_step is not None:
            on_step(total - run.hidden(population), total)
        population = run.land(population)
    run.panel.check()

    return Samples(
        run.select(selection),
        run.landed.x_t,
        run.landed.log_w,
        run.landed.log_density,
        run.nominal,
        run.executed,
        story,
        run.panel.padded_passes,
        "" if full_house is None else in_words(full_house.how, full_house.failure),
    )
