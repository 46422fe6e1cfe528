"""The lists of ARC queries that worlds are made of, and which of them a row is fitted on."""

from __future__ import annotations

from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.splits import HELD
from factordiff.errors import InvalidInput

ROUNDS = 5  # of other demonstrations for each held-out query: they are few
SIZES = {"validation": 4_800, "test": 24_000, "fit": 3_600, "held": 6_000}


def arc_list(split: str) -> EvaluationSet:
    """`validation` and `test` as the data set has them; `fit` and `held` are 30 and 10 of 40 validation instances.

    Sides are told apart by instance, since a round of other demonstrations repeats a query.
    """
    dataset = Dataset.load()
    if split in ("validation", "test"):
        return dataset.evaluation(split)  # type: ignore[arg-type]
    if split not in SIZES:
        raise InvalidInput(f"split: expected one of {', '.join(SIZES)}, got {split!r}")
    queries = dataset.evaluation("validation", rounds=ROUNDS if split == "held" else 1)
    held = queries.numbers >= HELD.start
    return queries.take(held if split == "held" else ~held)
