"""What may not be trained on: the orbits of every pair that something is measured with."""

from __future__ import annotations

from factordiff.arc.artefact import Artefact
from factordiff.arc.build.candidates import orbit_name
from factordiff.arc.instances import instance_grids, stored_grids
from factordiff.arc.splits import VALIDATION_AND_TEST
from factordiff.errors import DataError


def measured_orbits(artefact: Artefact, where: str) -> frozenset[bytes]:
    """The orbits of a data set's validation and test pairs and of all its published pairs, shown or asked."""
    return evaluation_orbits(artefact, where) | published_orbits(artefact, where)


def evaluation_orbits(artefact: Artefact, where: str) -> frozenset[bytes]:
    """The orbits of the instances 760 to 999 of every task."""
    if "evaluation_frames" not in artefact.arrays:
        raise DataError(
            f"{where}: expected a data set with validation and test instances, got one without; "
            "give a file that `factordiff data build` wrote"
        )
    rows = range(len(artefact.tasks))
    return frozenset(
        orbit_name(instance_grids(artefact, row, instance))
        for row in rows
        for instance in VALIDATION_AND_TEST
    )


def published_orbits(artefact: Artefact, where: str) -> frozenset[bytes]:
    """The orbits of the published pairs of the data set's own tasks and of the tasks left out of it."""
    found = set()
    for name in ("official", "unseen"):
        if f"{name}_inputs" not in artefact.arrays:
            raise DataError(
                f"{where}: expected a data set with published pairs, part '{name}_inputs' is missing; "
                "give a file that `factordiff data build` wrote"
            )
        for row in range(len(artefact.arrays[f"{name}_inputs"])):
            found.add(orbit_name(stored_grids(artefact.arrays, f"{name}_", row)))
    return frozenset(found)
