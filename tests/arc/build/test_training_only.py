from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from factordiff.arc.artefact import Artefact, save_artefact
from factordiff.arc.build import training_only
from factordiff.arc.build.balance import size_of
from factordiff.arc.build.candidates import Candidate, Candidates, collect, orbit_name
from factordiff.arc.build.difficulty import LARGER
from factordiff.arc.build.training_only import build_training_only, choose, measured_orbits
from factordiff.arc.build.verify import rebuild_sample
from factordiff.arc.grid import to_canvas
from factordiff.arc.instances import instance_grids
from factordiff.arc.symmetry import transform
from factordiff.errors import DataError, InvalidInput

TASKS = ["27a28665", "67a3c6ac"]
FEW = {"tasks": TASKS, "instances": 60, "attempts": 600}


@pytest.fixture
def one_task(shipped: Artefact, monkeypatch: pytest.MonkeyPatch) -> Artefact:
    """The shipped data set with its first task alone, which is quicker to keep apart from."""
    per_task = (
        "tasks",
        "inputs",
        "outputs",
        "input_shapes",
        "output_shapes",
        "attempts",
        "evaluation_frames",
    )
    arrays = {name: part[:1] if name in per_task else part for name, part in shipped.arrays.items()}
    small = Artefact(arrays, shipped.manifest)
    monkeypatch.setattr(training_only, "load_artefact", lambda: small)
    return small


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Candidates:
    file = tmp_path_factory.mktemp("found") / "task.json"
    return collect(TASKS[1], 2, None, 600, file, difficulty=LARGER)


def plant(artefact: Artefact, candidate: Candidate, place: str) -> Artefact:
    """The data set with the candidate, turned, in place of one of its pairs."""
    arrays = {name: part.copy() for name, part in artefact.arrays.items()}
    if place in ("shown", "asked"):
        row = int(np.flatnonzero(arrays["unseen_is_test"] == (place == "asked"))[3])
        prefix, spot = "unseen_", (row,)
    else:
        prefix, spot = "", (0, {"validation": 780, "test": 999}[place])
    for side, grid in zip(("input", "output"), candidate.pair, strict=True):
        turned = transform(grid, 6)
        arrays[f"{prefix}{side}s"][spot] = to_canvas(turned)
        arrays[f"{prefix}{side}_shapes"][spot] = turned.shape
    return Artefact(arrays, artefact.manifest)


def orbits(artefact: Artefact, row: int) -> list[bytes]:
    count = artefact.arrays["inputs"].shape[1]
    return [orbit_name(instance_grids(artefact, row, instance)) for instance in range(count)]


def test_one_worker_two_workers_and_a_resumed_build_give_the_same_bytes(
    one_task: Artefact, tmp_path: Path
) -> None:
    for task, made in zip(TASKS, (250, 600), strict=True):
        collect(task, 2, None, made, tmp_path / "resumed" / f"{task}.json", difficulty=LARGER)
    built = {
        "two": build_training_only(tmp_path / "two", workers=2, **FEW),
        "resumed": build_training_only(tmp_path / "resumed", workers=1, **FEW),
    }
    for name, artefact in built.items():
        save_artefact(artefact, tmp_path / f"{name}.npz")
    for end in ("npz", "json"):
        assert len({(tmp_path / f"{name}.{end}").read_bytes() for name in built}) == 1


def test_what_is_built(one_task: Artefact, tmp_path: Path) -> None:
    heard: dict[str, int] = {}
    artefact = build_training_only(tmp_path, progress=heard.__setitem__, **FEW)
    assert heard == dict.fromkeys(TASKS, 600)
    assert artefact.tasks == TASKS
    assert artefact.arrays["inputs"].shape == artefact.arrays["outputs"].shape == (2, 60, 100)
    assert artefact.arrays["input_shapes"].shape == artefact.arrays["output_shapes"].shape == (2, 60, 2)
    assert artefact.arrays["attempts"].shape == (2, 60)
    for row in (0, 1):
        names = orbits(artefact, row)
        assert len(set(names)) == 60, "unique up to symmetry"
        assert names == sorted(names)
    assert artefact.manifest["use"].startswith("training only")
    assert artefact.manifest["rule"]["difficulty"] == LARGER.stated
    assert artefact.manifest["apart_from"] == [one_task.sha256]
    assert rebuild_sample(artefact, per_task=5) == 10, "every instance comes from the attempt it names"


@pytest.mark.parametrize("place", ["validation", "test", "shown", "asked"])
def test_a_pair_that_is_measured_with_is_left_out(one_task: Artefact, found: Candidates, place: str) -> None:
    """A chosen pair, turned and planted under another task or among the published: it is gone."""
    before = choose(found, measured_orbits(one_task, "before"), 60)
    lost = before.found[17]
    after = choose(found, measured_orbits(plant(one_task, lost, place), "after"), 60)
    assert lost.orbit not in {one.orbit for one in after.found}
    assert len(after.found) == 60
    assert after.refusals["measured"] == before.refusals["measured"] + 1


def test_a_build_is_apart_from_the_shipped_set_and_from_every_file_given(
    one_task: Artefact, found: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (choose(found, frozenset(), 60).found[place] for place in (3, 30))
    changed = plant(one_task, first, "validation")
    monkeypatch.setattr(training_only, "load_artefact", lambda: changed)
    other = Artefact(plant(one_task, second, "test").arrays, {"sha256": "0" * 64})
    built = build_training_only(tmp_path, apart_from={"other.npz": other}, **{**FEW, "tasks": TASKS[1:]})
    assert not {first.orbit, second.orbit} & set(orbits(built, 0))
    assert built.manifest["apart_from"] == ["0" * 64, one_task.sha256]


def test_sizes_come_alike_and_inputs_are_larger_than_shipped(shipped: Artefact, found: Candidates) -> None:
    areas = np.array([one.pair[0].size for one in choose(found, frozenset(), 60).found])
    row = shipped.tasks.index(TASKS[1])
    usual = shipped.arrays["input_shapes"][row, :760].astype(int).prod(axis=-1)
    assert (areas >= 64).mean() > 1.5 * (usual >= 64).mean()
    there = Counter(size_of(one.pair[0].size) for one in found.found)
    taken = Counter(map(size_of, areas.tolist()))
    even = max(taken.values())
    assert all(even - 1 <= taken[size] or taken[size] == there[size] for size in there)


def test_too_few_candidates_are_a_sentence(found: Candidates) -> None:
    with pytest.raises(DataError, match=r"task 67a3c6ac, seed 2: \d+ candidates in 600 .* 601 are wanted"):
        choose(found, frozenset(), 601)


@pytest.mark.parametrize("name", ["instances", "attempts"])
def test_nothing_cannot_be_asked_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: expected at least 1, got 0"):
        build_training_only(tmp_path, **{**FEW, name: 0})


def test_unknown_tasks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tasks: 00d62c1b not among the 178"):
        build_training_only(tmp_path, tasks=["00d62c1b"])
