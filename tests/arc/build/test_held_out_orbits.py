from __future__ import annotations

import numpy as np
import pytest

from factordiff.arc.artefact import Artefact
from factordiff.arc.build.candidates import orbit_name
from factordiff.arc.build.training_only import evaluation_orbits, measured_orbits, published_orbits
from factordiff.arc.grid import from_canvas
from factordiff.arc.instances import instance_grids
from factordiff.arc.symmetry import transform
from factordiff.errors import DataError


@pytest.fixture(scope="module")
def two_tasks(shipped: Artefact) -> Artefact:
    per_task = (
        "tasks",
        "inputs",
        "outputs",
        "input_shapes",
        "output_shapes",
        "attempts",
        "evaluation_frames",
    )
    arrays = {name: part[:2] if name in per_task else part for name, part in shipped.arrays.items()}
    return Artefact(arrays, shipped.manifest)


def test_validation_and_test_are_measured_with_and_training_is_not(two_tasks: Artefact) -> None:
    orbits = evaluation_orbits(two_tasks, "two tasks")
    assert len(orbits) == 2 * 240
    for row in (0, 1):
        for instance in (760, 799, 800, 999):
            moved = tuple(transform(grid, 5) for grid in instance_grids(two_tasks, row, instance))
            assert orbit_name((moved[0], moved[1])) in orbits
        for instance in (0, 759):
            assert orbit_name(instance_grids(two_tasks, row, instance)) not in orbits


def test_published_pairs_are_measured_with_shown_or_asked(shipped: Artefact, two_tasks: Artefact) -> None:
    orbits = published_orbits(two_tasks, "two tasks")
    for name in ("official", "unseen"):
        is_test = shipped.arrays[f"{name}_is_test"]
        for row in (int(np.flatnonzero(is_test)[-1]), int(np.flatnonzero(~is_test)[-1])):
            pair = [
                from_canvas(
                    shipped.arrays[f"{name}_{side}s"][row],
                    tuple(shipped.arrays[f"{name}_{side}_shapes"][row].tolist()),
                )
                for side in ("input", "output")
            ]
            assert orbit_name((transform(pair[0], 3), transform(pair[1], 3))) in orbits
    assert measured_orbits(two_tasks, "two tasks") == orbits | evaluation_orbits(two_tasks, "two tasks")


def test_a_file_without_measured_pairs_is_refused(two_tasks: Artefact) -> None:
    for part, sentence in (
        (
            "evaluation_frames",
            "more.npz: expected a data set with validation and test instances, got one without",
        ),
        (
            "unseen_inputs",
            "more.npz: expected a data set with published pairs, part 'unseen_inputs' is missing",
        ),
    ):
        arrays = {name: array for name, array in two_tasks.arrays.items() if name != part}
        with pytest.raises(DataError, match=sentence):
            measured_orbits(Artefact(arrays, two_tasks.manifest), "more.npz")
