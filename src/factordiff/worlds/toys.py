"""Tiny worlds whose laws are enumerated: each family of compositions is exact in one of them, and no other is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.evidence import Evidence
from factordiff.composition.factors import rows
from factordiff.experts.expert import Expert
from factordiff.experts.tabular import TabularExpert
from factordiff.streams import Purpose, uniform
from factordiff.toy.law import total_variation
from factordiff.toy.world import (
    CELLS,
    VALUES,
    Joint,
    beside,
    normalised,
    random_joint,
    two_halves,
    two_opinions,
    two_views,
)
from factordiff.worlds.methods import FACTOR, MethodRow
from factordiff.worlds.metric import Filled, Measure, Metric, Ratio
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import always
from factordiff.worlds.world import Experts, World, checked_limit

METHODS = (
    "alone", "mixture", "product", "geometric-mean", "superdiff", "fkc[beta=1,1]", "rne[beta=1,1]", "routing",
    "routing[factors=row]", "soft-routing",
)  # fmt: skip
EVIDENCE = "evidence-by-half"
FITTED = (
    "fitted:mixture",
    "fitted:product",
    "fitted:evidence",
    "fitted:learned",
    "fitted:learned[kind=neighbourhood]",
)
SIZES = {"validation": 512, "test": 1}
LAYOUT = (2, 2)  # two rows of two cells: the halves


@dataclass(frozen=True)
class Made:
    """Experts and the law that a perfect composition of them would draw from; `halves`: each owns two cells."""

    experts: tuple[Expert, ...]
    truth: Joint
    objectives: tuple[str, str] = ("full", "full")
    halves: bool = False


def _either() -> Made:
    return Made(two_opinions(), (random_joint(1) + random_joint(2)) / 2)


def _both() -> Made:
    return Made(two_opinions(), normalised(random_joint(1) * random_joint(2)))


def _halves(wrongly_sure: bool) -> Made:
    world = two_halves(wrongly_sure)
    return Made(world.experts, world.truth, halves=True)


def _owners() -> Made:
    first, second, third, fourth = (random_joint(seed, cells=2) for seed in (3, 4, 5, 6))
    experts = TabularExpert(beside(first, second)), TabularExpert(beside(third, fourth))
    return Made(experts, beside((first + third) / 2, (second + fourth) / 2))


def _cells() -> Made:
    """Every cell of every expert is a law of its own."""
    laws = [[random_joint(seed, cells=1) for seed in range(first, first + CELLS)] for first in (10, 20)]
    mixed = [(one + other) / 2 for one, other in zip(*laws, strict=True)]

    def joint(of_cells: list[Tensor]) -> Joint:
        return torch.einsum("a,b,c,d->abcd", *of_cells)

    return Made((TabularExpert(joint(laws[0])), TabularExpert(joint(laws[1]))), joint(mixed))


def _views() -> Made:
    world = two_views()
    return Made(world.experts, world.truth, ("occupancy", "color"))


MAKERS: dict[str, tuple[str, Callable[[], Made]]] = {
    "toy-either": ("one of two opinions is right about the whole: SuperDiff OR is exact", _either),
    "toy-both": ("both opinions must agree: a product with corrected particles is exact", _both),
    "toy-halves": ("each knows half and is flat elsewhere: the product is exact", lambda: _halves(False)),
    "toy-halves-sure": (
        "each knows half and is wrongly sure elsewhere: only being told is exact",
        lambda: _halves(True),
    ),
    "toy-owners": (
        "each half belongs to one of the two, nobody says which: evidence by half is exact",
        _owners,
    ),
    "toy-cells": ("each cell belongs to one of the two, independently: the mixture is exact", _cells),
    "toy-views": ("one knows whether, the other what: only views are exact", _views),
}


class Toy(World):
    """Four cells of three values; the figure is the total variation to the truth, by enumeration."""

    layout = LAYOUT
    factors = ("pixel", "row", "whole")
    sizes = SIZES
    batch = SIZES["validation"]  # a law is enumerated once for all draws

    def __init__(self, name: str) -> None:
        self.name = name
        self.tests, make = MAKERS[name]
        self.made = make()
        extra = (EVIDENCE, *(("views",) if "occupancy" in self.made.objectives else ()))
        self.methods = (*METHODS, *extra, *FITTED, *(("told",) if self.made.halves else ()))
        self.metric = Metric(
            (Measure("distance", "TV", lower_is_better=True),),
            lambda filled: _distance(filled, self.made.truth),
            "enumerated",
        )

    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """Two tables."""
        named = dict(zip(("first", "second"), self.made.experts, strict=True))
        return Experts(named, self.made.objectives, dict.fromkeys(named, "exact"))

    def queries(self, split: str, limit: int | None = None) -> Queries:
        """One query in which everything is hidden; for validation, draws from the truth for a router to learn from.

        The query's answer is the likeliest outcome, which the figure does not look at.
        """
        count = checked_limit(split, limit, self.sizes)
        table = self.made.truth.flatten()
        outcome = table.argmax()[None]
        if split == "validation":
            numbers = uniform(0, Purpose.EVALUATION, torch.arange(count))
            outcome = torch.searchsorted(table.cumsum(0), numbers.to(table)).clamp(max=len(table) - 1)
        x_0 = outcome[:, None] // VALUES ** torch.arange(CELLS - 1, -1, -1) % VALUES
        owners = torch.tensor([[0, 0, 1, 1]]).expand_as(x_0) if self.made.halves else None
        names = tuple(f"{self.name} {number}" for number in range(count))
        return Queries(torch.full_like(x_0, VALUES), x_0, names, owners=owners)

    def data(self) -> str:
        """The worlds of toy/world.py."""
        return "toy-2"

    def entries(self) -> dict[str, MethodRow]:
        """Evidence earned inside each half."""
        by_half = Evidence(rows(*LAYOUT))
        return {EVIDENCE: MethodRow(EVIDENCE, FACTOR, lambda setting: always(setting.team(by_half)))}


def _distance(filled: Filled, truth: Float[Tensor, ...]) -> dict[str, Ratio]:
    assert filled.law is not None
    far = torch.full((len(filled.x_0),), total_variation(filled.law, truth), dtype=torch.float64)
    return {"distance": (far, torch.ones_like(far))}
