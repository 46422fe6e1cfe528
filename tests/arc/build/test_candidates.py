from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from factordiff.arc.build import candidates
from factordiff.arc.build.candidates import Candidates, collect
from factordiff.arc.symmetry import transform

TASK = "8403a5d5"


def content(found: Candidates) -> tuple[object, ...]:
    pairs = [(one.number, one.orbit, *(grid.tolist() for grid in one.pair)) for one in found.found]
    return found.measurement(), pairs


def test_candidates_are_first_appearances_in_attempt_order(tmp_path: Path) -> None:
    found = collect(TASK, 0, 100, 10_000, tmp_path / "a.json").found
    numbers = [one.number for one in found]
    assert numbers == sorted(set(numbers))
    assert len({one.orbit for one in found}) == 100
    one = found[0]
    moved = tuple(transform(grid, 3) for grid in one.pair)
    assert candidates.orbit_name(moved) == one.orbit


def test_where_collecting_stops_changes_nothing(tmp_path: Path) -> None:
    whole = collect(TASK, 0, 100, 10_000, tmp_path / "whole.json")
    for wanted in (3, 40, 41, 100):
        parts = collect(TASK, 0, wanted, 10_000, tmp_path / "parts.json")
        assert len(parts.found) == wanted
    assert content(parts) == content(whole)
    for budget in (1, 17, whole.attempts):
        parts = collect(TASK, 0, 100, budget, tmp_path / "budget.json")
        assert parts.attempts == budget
    assert content(parts) == content(whole)


@pytest.mark.parametrize("damage", ["truncated", "another seed", "another rule", "nonsense", "bad grid"])
def test_a_file_that_is_not_ours_counts_as_nothing(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "task.json"
    whole = collect(TASK, 0, 20, 10_000, file)
    text = file.read_text()
    spelled = json.loads(text)
    if damage == "truncated":
        file.write_text(text[: len(text) // 2])
    elif damage == "another seed":
        collect(TASK, 1, 5, 10_000, file)
    elif damage == "another rule":
        file.write_text(json.dumps({**spelled, "rule": {}}))
    elif damage == "nonsense":
        file.write_bytes(b"\xff\x00")
    else:
        file.write_text(json.dumps({**spelled, "found": [[3, [[99]], [[1]]]]}))
    assert content(collect(TASK, 0, 20, 10_000, file)) == content(whole)


def test_other_seeds_give_other_instances(tmp_path: Path) -> None:
    one, two = (collect(TASK, seed, 50, 10_000, tmp_path / f"{seed}.json") for seed in (0, 1))
    assert {x.orbit for x in one.found} != {x.orbit for x in two.found}
    assert any(not np.array_equal(a.pair[0], b.pair[0]) for a, b in zip(one.found, two.found, strict=True))
