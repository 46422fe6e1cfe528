"""What is chosen on validation queries, never on test: routing temperatures, global weights, settings of particles.

A routing temperature is one number for each expert, the same at every cell; so are exponents of a product and weights
of a mixture. Who fits the one must fit the others, or the comparison is with a baseline that was not given its chance.
"""

from __future__ import annotations

import math

from factordiff.evaluation.runs import PARTICLE_METHODS
from factordiff.experiments.pairs import PAIRS, RATIOS, TEMPERATURES, TUNING, TUNING_PARTICLES, ExpertPair
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec

# Exponents (None is 1/M), and below which share of effective particles they are resampled (None is half, 1 is always).
PARTICLE_SETTINGS: tuple[tuple[tuple[float, ...] | None, float | None], ...] = (
    (None, None),
    ((1.0, 1.0), None),
    (None, 1.0),
    ((1.0, 1.0), 1.0),
    ((0.1, 1.0), None),
    ((1.0, 0.1), None),
    ((0.1, 1.0), 1.0),
    ((1.0, 0.1), 1.0),
    # The same ratios at another scale. Who takes the likeliest value sees no difference, but these methods draw, and a
    # tenth of an expert's log-probabilities is a flat expert.
    ((1.0, 10.0), None),
    ((10.0, 1.0), None),
    ((1.0, 10.0), 1.0),
    ((10.0, 1.0), 1.0),
)


def candidates(pair: ExpertPair, method: str) -> dict[float, RunSpec]:
    """Routing at every temperature, a product or a mixture at every ratio of the experts' say, on validation."""
    numbers = TEMPERATURES if method == "routing" else RATIOS
    return {number: pair.fitted(method, number, TUNING) for number in numbers}


def particle_rows(
    pair: ExpertPair, method: str, queries: int | None = TUNING_PARTICLES, split: str = "validation"
) -> list[RunSpec]:
    """A particle method as it may be set, the paper's reading first."""
    return [
        RunSpec(pair.experts, method, split, beta=beta, resampling=resampling, queries=queries)
        for beta, resampling in PARTICLE_SETTINGS
    ]


def fitted_number(archive: RecordFolder, pair: ExpertPair, method: str) -> float | None:
    """The number of highest exact accuracy; among equals the one nearest to 1. None before all of them are run."""
    scores = []
    for number, row in candidates(pair, method).items():
        found = archive.outcomes(row)
        if found is None:
            return None
        scores.append((-float(found.exact.mean()), abs(math.log(number)), number))
    return min(scores)[-1]


def fitted_row(
    archive: RecordFolder, pair: ExpertPair, method: str, queries: int | None, split: str = "test"
) -> RunSpec | None:
    """The method with the fitted number."""
    number = fitted_number(archive, pair, method)
    return None if number is None else pair.fitted(method, number, queries, split)


def better_row(
    archive: RecordFolder, pair: ExpertPair, method: str, queries: int | None, split: str = "test"
) -> RunSpec:
    """The particle method as it does best on validation (better reading); before that is run, the paper's reading."""
    scores = []
    for row in particle_rows(pair, method):
        found = [archive.outcomes(row, reading) for reading in ("highest-target", "draw")]
        scores.append(max((float(one.exact.mean()) for one in found if one is not None), default=0.0))
    return particle_rows(pair, method, queries, split)[scores.index(max(scores))]


def settled(archive: RecordFolder, row: RunSpec) -> RunSpec:
    """A planned row as it is run: a particle method of a pair is set as validation chose."""
    pair = next((pair for pair in PAIRS if pair.experts == row.experts), None)
    if pair is None or row.method not in PARTICLE_METHODS or row.split == "validation":
        return row
    return better_row(archive, pair, row.method, row.queries, row.split)
