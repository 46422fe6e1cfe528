"""No test pair occurs in train or validation, in any task, under any symmetry."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from factordiff.arc.artefact import Artefact
from factordiff.arc.splits import TEST, TRAIN, VALIDATION
from factordiff.arc.symmetry import SYMMETRIES, canvas_table


def images(artefact: Artefact, sides: tuple[str, ...], instances: range, symmetry: int) -> Iterator[bytes]:
    """Every instance of the split under a symmetry: canvases and shapes, task by task."""
    table, parts = canvas_table(), []
    for side in sides:
        canvases = artefact.arrays[f"{side}s"][:, instances]
        shapes = artefact.arrays[f"{side}_shapes"][:, instances]
        moves = table[symmetry, shapes[..., 0] - 1, shapes[..., 1] - 1]
        parts.append(np.take_along_axis(canvases, moves, axis=-1))
        parts.append(shapes[..., ::-1] if symmetry % 2 else shapes)
    rows = np.concatenate(parts, axis=-1).reshape(120 * len(instances), -1)
    return (row.tobytes() for row in rows)


def test_the_splits_are_800_and_200_with_40_of_the_800_set_aside() -> None:
    assert [*TRAIN, *VALIDATION, *TEST] == [*range(1000)]
    assert (len(TRAIN) + len(VALIDATION), len(VALIDATION), len(TEST)) == (800, 40, 200)


def test_no_test_pair_was_seen_in_any_task_or_symmetry(shipped: Artefact) -> None:
    tested = set(images(shipped, ("input", "output"), TEST, 0))
    assert len(tested) == 24_000
    for symmetry in SYMMETRIES:
        seen = images(shipped, ("input", "output"), range(TEST.start), symmetry)
        assert tested.isdisjoint(seen)


def test_no_validation_pair_was_trained_on(shipped: Artefact) -> None:
    tested = set(images(shipped, ("input", "output"), VALIDATION, 0))
    assert len(tested) == 4_800
    for symmetry in SYMMETRIES:
        assert tested.isdisjoint(images(shipped, ("input", "output"), TRAIN, symmetry))


def test_bare_inputs_do_recur_and_how_many(shipped: Artefact, record_property: pytest.RecordProperty) -> None:
    """Two tasks may ask different things about the same grid; the documentation gives these counts."""
    tested = list(images(shipped, ("input",), TEST, 0))
    seen = set(images(shipped, ("input",), range(TEST.start), 0))
    moved = seen.union(*(images(shipped, ("input",), range(TEST.start), symmetry) for symmetry in SYMMETRIES))
    plain, up_to_symmetry = (sum(grid in known for grid in tested) for known in (seen, moved))
    record_property("bare_inputs", json.dumps([plain, up_to_symmetry]))
    assert plain <= up_to_symmetry < 24_000
