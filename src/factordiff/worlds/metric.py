"""What is measured of filled cells: every figure is a sum over queries divided by a sum of sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.composition.emission import log_prob_at
from factordiff.errors import InvalidInput, Unavailable
from factordiff.types import CellLogProbs
from factordiff.worlds.queries import Queries

# decoded: cells are filled by the loop. one-pass: the composed distribution at the start, all hidden cells at once.
# enumerated: the law of the sampler over all outcomes.
Mode = Literal["decoded", "one-pass", "enumerated"]
Ratio = tuple[Float[Tensor, " query"], Float[Tensor, " query"]]  # what is added up, and what it is divided by


@dataclass(frozen=True)
class Filled:
    """What a method made of some queries: values, and a distribution per cell or over outcomes where there is one."""

    queries: Queries
    hidden: Bool[Tensor, "query cell"]
    x_0: Int[Tensor, "query cell"]
    log_probs: CellLogProbs | None = None
    law: Float[Tensor, ...] | None = None

    @property
    def right(self) -> Bool[Tensor, "query cell"]:
        """The hidden cells that are right."""
        return self.hidden & (self.x_0 == self.queries.x_0)


@dataclass(frozen=True)
class Measure:
    """One figure of a table; the unit is `%`, or a word."""

    name: str
    unit: str = "%"
    lower_is_better: bool = False
    aside: bool = False  # kept with the figures, for other programs, but no column of the table

    @property
    def sign(self) -> float:
        """1, or -1 where less is better."""
        return -1.0 if self.lower_is_better else 1.0

    def shown(self, value: float, sign: bool = False) -> str:
        """The figure for people, without its unit."""
        plus = "+" if sign else ""
        scale, digits = (100, 1) if self.unit == "%" else (1, 3)
        return f"{round(scale * value, digits) + 0.0:{plus}.{digits}f}"  # + 0.0: no minus before a zero


@dataclass(frozen=True)
class Metric:
    """The figures of a world; numbers are fitted by the first one."""

    measures: tuple[Measure, ...]
    score: Callable[[Filled], Mapping[str, Ratio]]
    mode: Mode = "decoded"

    @property
    def main(self) -> Measure:
        """The figure that everything is chosen by."""
        return self.measures[0]


def exact(filled: Filled, among: Bool[Tensor, "query cell"] | None = None) -> Ratio:
    """Queries with every hidden cell right, of all or of those in a part."""
    where = filled.hidden if among is None else filled.hidden & among
    every = ((filled.right & where) == where).all(-1).double()
    return every, torch.ones_like(every)


def cells(filled: Filled, among: Bool[Tensor, "query cell"] | None = None) -> Ratio:
    """Hidden cells that are right, of all or of those in a part."""
    where = filled.hidden if among is None else filled.hidden & among
    return (filled.right & where).sum(-1).double(), where.sum(-1).double()


def nats(filled: Filled, among: Bool[Tensor, "query cell"] | None = None) -> Ratio:
    r"""$-\log r(x_0)$ at each hidden cell, of all or of those in a part."""
    if filled.log_probs is None:
        raise InvalidInput(
            "metric: nats need the composed distributions of one pass, and the cells were decoded"
        )
    where = filled.hidden if among is None else filled.hidden & among
    lost = -log_prob_at(filled.log_probs, filled.queries.x_0)
    return torch.where(where, lost, 0.0).sum(-1), where.sum(-1).double()


EXACT = Metric(
    (Measure("exact"), Measure("cells")), lambda filled: {"exact": exact(filled), "cells": cells(filled)}
)
CELLS = Metric(
    (Measure("cells"), Measure("exact")), lambda filled: {"cells": cells(filled), "exact": exact(filled)}
)
NATS = Metric(
    (Measure("nats", "nats", lower_is_better=True), Measure("cells")),
    lambda filled: {"nats": nats(filled), "cells": cells(filled)},
    "one-pass",
)
METRICS = {"exact": EXACT, "cells": CELLS, "nats": NATS}

# One number for each query from its answer and the truth: what a person may give as a metric.
Scoring = Callable[[Int[Tensor, "query cell"], Int[Tensor, "query cell"]], Tensor]


def as_metric(given: str | Metric | Scoring) -> Metric:
    """A metric by name, itself, or a function (answers, truth) -> one number per query, of which more is better."""
    if isinstance(given, Metric):
        return given
    if isinstance(given, str):
        if given not in METRICS:
            raise Unavailable(f"metric: expected one of {', '.join(METRICS)} or a function, got {given!r}")
        return METRICS[given]
    if not callable(given):
        raise InvalidInput(f"metric: expected a name or a function (answers, truth), got {given!r}")
    name = getattr(given, "__name__", "score").strip("<>")

    def score(filled: Filled) -> dict[str, Ratio]:
        values = torch.as_tensor(given(filled.x_0, filled.queries.x_0)).double()
        if values.shape != (len(filled.x_0),):
            raise InvalidInput(
                f"metric: expected one number for each of {len(filled.x_0)} queries, got shape {tuple(values.shape)}"
            )
        if values.isnan().any():
            raise InvalidInput(
                f"metric: {name} is NaN for {int(values.isnan().sum())} of {len(values)} queries"
            )
        return {name: (values, torch.ones_like(values))}

    return Metric((Measure(name, "score"),), score)
