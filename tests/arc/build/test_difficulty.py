from __future__ import annotations

import pickle
import random

import pytest

from factordiff.arc.artefact import Artefact
from factordiff.arc.build.difficulty import AS_SHIPPED, LARGER, stated_difficulty
from factordiff.arc.build.rearc import attempt
from factordiff.errors import DataError


def test_ranges_are_what_the_statement_says() -> None:
    rng = random.Random(0)
    ranges = [LARGER.draw(rng) for _ in range(2_000)]
    from_zero = [upper for lower, upper in ranges if lower == 0.0]
    assert 0.45 < len(from_zero) / len(ranges) < 0.55
    assert all(0.25 <= upper <= 1 for upper in from_zero)
    assert max(from_zero) > 0.9
    narrow = [(lower, upper) for lower, upper in ranges if lower > 0]
    assert all(lower <= 0.2 and 0.25 <= upper <= 0.5 for lower, upper in narrow)


def test_large_grids_come_more_often_and_attempts_are_not_shared() -> None:
    areas = []
    for difficulty in (AS_SHIPPED, LARGER):
        made = [attempt("67a3c6ac", 0, number, difficulty) for number in range(400)]
        areas.append([one.pair[0].size for one in made if one.pair is not None])
    shipped, larger = (sum(area >= 64 for area in found) / len(found) for found in areas)
    assert areas[0] != areas[1]
    assert larger > 1.5 * shipped


def test_a_difficulty_travels_to_workers_and_is_found_by_its_statement(shipped: Artefact) -> None:
    assert pickle.loads(pickle.dumps(LARGER)) == LARGER
    assert stated_difficulty(shipped.manifest["rule"]["difficulty"]) is AS_SHIPPED
    assert stated_difficulty(LARGER.stated) is LARGER
    with pytest.raises(DataError, match=r"difficulty: the manifest states 'hard', which this version"):
        stated_difficulty("hard")
