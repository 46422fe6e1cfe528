"""A method's answers: one run of the loop, or, where runs vote, one for each expert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.method import Method
from factordiff.composition.vote import majority_vote
from factordiff.engine.auto import AutoEngine
from factordiff.engine.engine import Engine
from factordiff.experts.expert import Expert
from factordiff.sampling.gathered_evidence import gathered
from factordiff.sampling.orders import InBlocks
from factordiff.sampling.particles import draw_one
from factordiff.sampling.relay import Relayed
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.samples import Samples
from factordiff.streams import Draws, Purpose, hash_words


def decode(
    method: Method,
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"],
    condition: Any,
    *,
    reveal: RevealRule | None = None,
    seed: int = 0,
    items: Int[Tensor, " item"] | None = None,
    engine: Engine | AutoEngine | None = None,
    trace: bool = False,
    on_step: Callable[[int, int], None] | None = None,
) -> Samples:
    """Draw each item's answer by a method; where experts run alone, one run of the loop for each of them, pooled.

    Evidence that a method asks for is gathered before, and its passes are counted. Where a method's particles go
    different ways, the reveal rule is what they have in common.
    """
    if method.paths == "orders":
        reveal = InBlocks(reveal or ByConfidence())
    elif method.paths == "relay":
        reveal = Relayed(reveal or ByConfidence(), method.every)
    composition, before = gathered(method.composition, experts, x_t, condition, seed=seed, items=items)

    def run(which: Sequence[Expert], run_seed: int) -> Samples:
        return (engine or Engine()).sample(
            which,
            composition,
            x_t,
            condition,
            reveal=reveal,
            temperature=method.temperature,
            particles=method.particles,
            selection=method.selection,
            resampling=method.resampling,
            seed=run_seed,
            items=items,
            trace=trace,
            on_step=on_step,
        )

    if method.paths != "alone":
        return run(experts, seed).after(before)
    # Experts must not share their random numbers, or their runs would err together.
    runs = [run([expert], int(hash_words(seed, index))) for index, expert in enumerate(experts)]
    pooled = torch.cat([one.particles for one in runs], dim=1)
    return Samples(
        majority_vote(pooled.transpose(0, 1), experts[0].vocabulary.size),
        pooled,
        torch.cat([one.log_w for one in runs], dim=1),
        torch.cat([one.log_density for one in runs], dim=2),
        torch.stack([one.nominal_passes for one in runs]).sum(0),
        torch.stack([one.executed_passes for one in runs]).sum(0),
        runs[0].trace if len(runs) == 1 else None,
    )


def drawn_by_weight(samples: Samples, seed: int, items: Int[Tensor, " item"]) -> Int[Tensor, "item cell"]:
    """The answers that selection "draw" would have given, from a run that selected otherwise."""
    zeros = torch.zeros_like(items)
    chosen = draw_one(samples.log_w, Draws(seed, items, zeros).rows(Purpose.SELECT, zeros))
    return samples.particles[torch.arange(len(items), device=items.device), chosen]
