"""What a world is: frozen experts, queries by split, a metric, and what it is there to test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.worlds.methods import MethodRow
from factordiff.worlds.metric import Metric
from factordiff.worlds.queries import Queries

# What rows are fitted on when they are measured on a split. `held` is for choices that test queries must not make.
FITTED_ON = {"test": "validation", "held": "fit"}


@dataclass(frozen=True)
class Experts:
    """A world's experts by name, in tie order, what each was trained on, and a hash that names each one's weights."""

    experts: Mapping[str, Expert]
    objectives: Sequence[str]
    weights: Mapping[str, str]


class World(ABC):
    """Something to compare methods on. Rows that are measured on `test` are fitted on `validation`.

    A world may also have `held`, validation queries that are measured, and `fit`, the others that rows are then
    fitted on.
    """

    name: str
    tests: str  # what it tests, in a sentence
    metric: Metric
    methods: tuple[str, ...]  # the rows shown unless others are asked for
    needs: str = ""  # what it needs beyond the package; empty: nothing
    recipe: str = ""  # the commands that get it
    factors: tuple[str, ...] = ("pixel", "whole")  # those offered to methods that take factors
    layout: tuple[int, int] | None = None
    reveal: str = "fast"
    batch: int = 64
    rows: int = 1  # of an expert's own for every row of the loop: a pass is one of those

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """How many queries a split has."""

    @abstractmethod
    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """The experts, frozen, on a device; what is missing is refused with what to do."""

    @abstractmethod
    def queries(self, split: str, limit: int | None = None) -> Queries:
        """The first queries of a split, always the same."""

    def example(self) -> Queries:
        """One query to look at: the first of validation."""
        return self.queries("validation", 2)[:1].cut()

    @abstractmethod
    def data(self) -> str:
        """A name for the queries that changes when they do."""

    def entries(self) -> dict[str, MethodRow]:
        """Rows that only this world has, by the name that is typed; usually none."""
        return {}

    def references(self, queries: Queries) -> dict[str, Int[Tensor, "query cell"]]:
        """Answers of something that is no composition, by name; usually none."""
        return {}


def checked_limit(split: str, limit: int | None, sizes: Mapping[str, int]) -> int:
    """How many queries are meant."""
    if split not in sizes:
        raise InvalidInput(f"split: expected one of {', '.join(sizes)}, got {split!r}")
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit: expected at least 1, got {limit}")
    return sizes[split] if limit is None else min(limit, sizes[split])
