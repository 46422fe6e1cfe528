"""The methods by name: a composition and how it is decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition, Single
from factordiff.composition.correctors import feynman_kac, rne
from factordiff.composition.factors import Partition
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import Routing, SoftRouting
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from factordiff.composition.views import Views
from factordiff.composition.vote import majority_vote
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.expert import Expert
from factordiff.sampling.particles import RESAMPLING, draw_one
from factordiff.sampling.request import Selection
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.samples import Samples
from factordiff.streams import Draws, Purpose, hash_words


@dataclass(frozen=True)
class Options:
    """What a person may set; each method takes what concerns it."""

    temperatures: Sequence[float] | None = None  # routing temperatures T_m
    partition: Partition | None = None  # factors; None is every cell its own
    beta: Sequence[float] | None = None  # exponents of products and of particle targets
    weights: Sequence[float] | None = None  # of mixtures
    softness: float = 0.1
    particles: int = 8
    selection: Selection = "highest-target"  # of particle methods
    resampling: float = RESAMPLING
    runs: int = 3  # votes per expert


@dataclass(frozen=True)
class Method:
    """A composition, decoded by argmax unless it needs drawn values."""

    name: str
    composition: Composition
    temperature: float = 0.0
    particles: int = 1
    selection: Selection = "first"
    resampling: float = RESAMPLING


def _views(objectives: Sequence[str]) -> Views:
    """Occupancy from the occupancy expert, color from the other one."""
    if len(objectives) != 2 or "occupancy" not in objectives:
        raise InvalidInput(
            f"method: 'views' takes two experts, one of them trained on occupancy, got {', '.join(objectives)}"
        )
    occupancy = objectives.index("occupancy")
    return Views(occupancy=occupancy, color=1 - occupancy)


_BUILDERS: dict[str, Callable[[Options, Sequence[str]], Method]] = {
    "single": lambda o, e: Method("single", Single()),
    "mixture": lambda o, e: Method("mixture", Mixture(o.weights)),
    "product": lambda o, e: Method("product", Product(o.beta)),
    "geometric-mean": lambda o, e: Method("geometric-mean", GeometricMean()),
    "superdiff": lambda o, e: Method("superdiff", SuperDiff()),
    "superdiff-and": lambda o, e: Method("superdiff-and", SuperDiffAnd()),
    "fkc": lambda o, e: Method("fkc", feynman_kac(o.beta), 1.0, o.particles, o.selection, o.resampling),
    "rne": lambda o, e: Method("rne", rne(o.beta), 1.0, o.particles, o.selection, o.resampling),
    "routing": lambda o, e: Method("routing", Routing(o.partition, o.temperatures)),
    "soft-routing": lambda o, e: Method("soft-routing", SoftRouting(o.softness, o.partition, o.temperatures)),
    "views": lambda o, e: Method("views", _views(e)),
    "vote": lambda o, e: Method("vote", Single(), 1.0, o.runs, "vote"),
}
METHODS = tuple(_BUILDERS)


def method(name: str, objectives: Sequence[str], options: Options | None = None) -> Method:
    """The method of that name for experts trained on these objectives, in this order."""
    if name not in _BUILDERS:
        raise Unavailable(f"method: expected one of {', '.join(METHODS)}, got {name!r}")
    if name == "single" and len(objectives) != 1:
        raise InvalidInput(f"method: 'single' takes one expert, got {len(objectives)}; name another method")
    return _BUILDERS[name](options or Options(), objectives)


def answer(
    how: Method,
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"],
    condition: Any,
    *,
    reveal: RevealRule | None = None,
    seed: int = 0,
    items: Int[Tensor, " item"] | None = None,
    engine: Engine | None = None,
    trace: bool = False,
    on_step: Callable[[int, int], None] | None = None,
) -> Samples:
    """Draw each item's answer by a method; a vote is one run of the loop for each expert, pooled."""

    def run(which: Sequence[Expert], run_seed: int) -> Samples:
        return (engine or Engine()).sample(
            which,
            how.composition,
            x_t,
            condition,
            reveal=reveal,
            temperature=how.temperature,
            particles=how.particles,
            selection=how.selection,
            resampling=how.resampling,
            seed=run_seed,
            items=items,
            trace=trace,
            on_step=on_step,
        )

    if how.selection != "vote":
        return run(experts, seed)
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
