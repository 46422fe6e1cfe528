"""More instances of the same tasks, to train on and for nothing else: large inputs as often as small ones.

The published pairs are often large, the first candidates of a generator rarely. So every task gets a fixed number of
attempts at a difficulty that gives large grids more often; of the candidates, all that anything is measured with are
left out, and of the rest `balance` takes as many as wanted, spread over the sizes of their inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from factordiff.arc.artefact import Artefact, encode_ids, load_artefact, make_artefact
from factordiff.arc.build.assembly import chosen_tasks, instance_arrays
from factordiff.arc.build.balance import SMALLEST, balanced
from factordiff.arc.build.candidates import Candidates, orbit_name, rule
from factordiff.arc.build.difficulty import LARGER
from factordiff.arc.build.workers import collect_all
from factordiff.arc.instances import instance_grids, stored_grids
from factordiff.arc.splits import VALIDATION_AND_TEST
from factordiff.errors import DataError, InvalidInput

SEED = 2
INSTANCES = 3_000
ATTEMPTS = 40_000
CHOICE = (
    f"even over max(isqrt(n), {SMALLEST}), n cells of the input but at least {SMALLEST**2 - 1}, "
    "then over n, then by hash of the orbit"
)


def build_training_only(
    folder: Path,
    seed: int = SEED,
    workers: int = 1,
    tasks: Sequence[str] | None = None,
    apart_from: Mapping[str, Artefact] | None = None,
    instances: int = INSTANCES,
    attempts: int = ATTEMPTS,
    progress: Callable[[str, int], None] = lambda task, made: None,
) -> Artefact:
    """Build `instances` more instances of each task, apart from all that is measured with.

    That is the shipped data set's validation and test pairs and the published pairs, and the same of the data sets
    in `apart_from`, which gives each a name to be called in errors. `folder` keeps what is found, so that an
    interrupted build goes on where it stopped; `progress` hears (task, attempts so far).
    """
    for name, number in (("instances", instances), ("attempts", attempts)):
        if number < 1:
            raise InvalidInput(f"{name}: expected at least 1, got {number}")
    chosen = chosen_tasks(tasks)
    apart = {"the shipped data set": load_artefact(), **(apart_from or {})}
    orbits = frozenset[bytes]().union(*(measured_orbits(other, name) for name, other in apart.items()))
    choice = partial(choose, measured=orbits, count=instances)
    taken = collect_all(chosen, seed, None, attempts, folder, workers, progress, LARGER, choice)
    arrays = {"tasks": encode_ids(chosen), **instance_arrays([taken[task].found for task in chosen])}
    stated: dict[str, Any] = {
        "use": "training only: nothing is set aside, so nothing can be measured on it",
        "seed": seed,
        "rule": {
            **rule(LARGER),
            "attempts": attempts,
            "instances": instances,
            "choice": CHOICE,
            "order": "hash of the orbit",
        },
        "apart_from": sorted({other.sha256 for other in apart.values()}),
        "counts": {
            "tasks": len(chosen),
            "pairs": len(chosen) * instances,
            "left_out_as_measured": sum(taken[task].refusals["measured"] for task in chosen),
        },
    }
    return make_artefact(arrays, stated)


def choose(candidates: Candidates, measured: frozenset[bytes], count: int) -> Candidates:
    """The task's candidates, reduced to `count` balanced ones, none of which anything is measured with."""
    free = [candidate for candidate in candidates.found if candidate.orbit not in measured]
    if len(free) < count:
        raise DataError(
            f"task {candidates.task}, seed {candidates.seed}: {len(free):,} candidates in {candidates.attempts:,} "
            f"attempts that nothing is measured with, {count:,} are wanted; allow more attempts or want fewer instances"
        )
    refusals = Counter({**candidates.refusals, "measured": len(candidates.found) - len(free)})
    return replace(candidates, found=balanced(free, count), refusals=refusals)


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
