"""What is chosen on validation queries, never on test: routing temperatures, and the exponents of particle methods."""

from __future__ import annotations

import math

from factordiff.evaluation.outcomes import Archive
from factordiff.evaluation.rows import PARTICLE_METHODS, Row
from factordiff.experiments.pairs import PAIRS, TEMPERATURES, TUNING, TUNING_PARTICLES, Pair

EXPONENTS: tuple[tuple[float, ...] | None, ...] = (None, (1.0, 1.0))  # None is 1/M


def temperature_rows(pair: Pair) -> list[Row]:
    """Routing at every temperature of the second expert, on validation."""
    return [pair.tempered(temperature, TUNING) for temperature in TEMPERATURES]


def exponent_rows(pair: Pair, method: str) -> list[Row]:
    """A particle method at every exponent, on validation."""
    return [
        Row(pair.experts, method, "validation", beta=beta, queries=TUNING_PARTICLES) for beta in EXPONENTS
    ]


def fitted_temperature(archive: Archive, pair: Pair) -> float | None:
    """The temperature of highest exact accuracy; among equals the one nearest to 1. None before they are run."""
    scores = []
    for temperature, row in zip(TEMPERATURES, temperature_rows(pair), strict=True):
        found = archive.outcomes(row)
        if found is None:
            return None
        scores.append((-float(found.exact.mean()), abs(math.log(temperature)), temperature))
    return min(scores)[-1]


def fitted_row(archive: Archive, pair: Pair, queries: int | None, split: str = "test") -> Row | None:
    """Routing with the fitted temperature."""
    temperature = fitted_temperature(archive, pair)
    return None if temperature is None else pair.tempered(temperature, queries, split)


def better_row(archive: Archive, pair: Pair, method: str, queries: int | None, split: str = "test") -> Row:
    """The particle method with the exponents that do better on validation (better reading); 1/M before that is run."""
    scores = []
    for row in exponent_rows(pair, method):
        found = [archive.outcomes(row, reading) for reading in ("highest-target", "draw")]
        scores.append(max((float(one.exact.mean()) for one in found if one is not None), default=0.0))
    return Row(pair.experts, method, split, beta=EXPONENTS[scores.index(max(scores))], queries=queries)


def settled(archive: Archive, row: Row) -> Row:
    """A planned row as it is run: a particle method of a pair gets the exponents that validation chose."""
    pair = next((pair for pair in PAIRS if pair.experts == row.experts), None)
    if pair is None or row.method not in PARTICLE_METHODS or row.split == "validation":
        return row
    return better_row(archive, pair, row.method, row.queries, row.split)
