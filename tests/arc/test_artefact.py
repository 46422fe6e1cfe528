from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from factordiff.arc.artefact import (
    SHIPPED,
    Artefact,
    array_hash,
    load_artefact,
    load_manifest,
    make_artefact,
    save_artefact,
)
from factordiff.errors import DataError, FileError


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for file in (SHIPPED, SHIPPED.with_suffix(".json")):
        shutil.copy(file, tmp_path / file.name)
    return tmp_path / SHIPPED.name


def test_the_shipped_artefact_is_what_its_manifest_says(shipped: Artefact) -> None:
    counts = shipped.manifest["counts"]
    assert counts["pairs"] == 120_000
    assert shipped.arrays["inputs"].shape == shipped.arrays["outputs"].shape == (120, 1000, 100)
    assert counts["unseen_tasks"] == 58
    for side in ("input", "output"):
        assert shipped.arrays[f"{side}s"].max() <= 9
        shapes = shipped.arrays[f"{side}_shapes"]
        assert shapes.min() >= 1
        assert shapes.max() <= 10
        rows, columns = np.indices((10, 10)).reshape(2, 100)
        outside = (rows >= shapes[..., :1]) | (columns >= shapes[..., 1:])
        assert not shipped.arrays[f"{side}s"][outside].any(), "padding is 0"
    assert SHIPPED.stat().st_size < 4_000_000


def test_saving_is_the_same_bytes_every_time(shipped: Artefact, tmp_path: Path) -> None:
    arrays = {name: shipped.arrays[name] for name in ("tasks", "official_inputs", "evaluation_frames")}
    for name in ("a", "b"):
        save_artefact(make_artefact(arrays, {"seed": 0}), tmp_path / name / "x.npz")
    assert (tmp_path / "a/x.npz").read_bytes() == (tmp_path / "b/x.npz").read_bytes()
    again = load_artefact(tmp_path / "a/x.npz")
    assert again.manifest == make_artefact(arrays, {"seed": 0}).manifest
    assert all(np.array_equal(again.arrays[name], array) for name, array in arrays.items())
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["x.json", "x.npz"]


def test_the_hash_sees_type_shape_and_content() -> None:
    array = np.arange(6, dtype=np.int16)
    others = [array.astype(np.int32), array.reshape(2, 3), array[::-1]]
    assert len({array_hash(array), *map(array_hash, others)}) == 4
    assert array_hash(array.reshape(2, 3).T) == array_hash(array.reshape(2, 3).T.copy())


def test_a_changed_part_is_named(copy: Path) -> None:
    artefact = load_artefact(copy)
    outputs = artefact.arrays["outputs"].copy()
    outputs[5, 6, 7] ^= 1
    np.savez(copy, **{**artefact.arrays, "outputs": outputs})
    with pytest.raises(DataError, match="part 'outputs' has sha256"):
        load_artefact(copy)


def test_a_missing_part_is_named(copy: Path) -> None:
    manifest = json.loads(copy.with_suffix(".json").read_text())
    manifest["parts"]["more"] = manifest["parts"]["inputs"]
    copy.with_suffix(".json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="part 'more' is missing"):
        load_artefact(copy)


def test_a_flipped_byte_anywhere_is_refused(copy: Path) -> None:
    content = bytearray(copy.read_bytes())
    with zipfile.ZipFile(copy) as archive:
        places = {info.filename[:-4]: info.header_offset + 200 for info in archive.infolist()}
    for name, place in places.items():
        if name in ("inputs", "outputs", "attempts"):
            damaged = content.copy()
            damaged[place] ^= 0x55
            copy.write_bytes(damaged)
            with pytest.raises(DataError, match=f"part '{name}'"):
                load_artefact(copy)


@pytest.mark.parametrize("length", [0, 100, 2_000_000])
def test_a_truncated_file_is_refused(copy: Path, length: int) -> None:
    copy.write_bytes(copy.read_bytes()[:length])
    with pytest.raises(DataError, match=r"rearc\.npz: not a readable npz file"):
        load_artefact(copy)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"parts": 3, "sha256": ""}'])
def test_a_bad_manifest_is_refused(copy: Path, content: bytes) -> None:
    copy.with_suffix(".json").write_bytes(content)
    with pytest.raises(DataError, match=r"rearc\.json"):
        load_artefact(copy)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, copy: Path) -> None:
    copy.unlink()
    with pytest.raises(DataError, match=r"rearc\.npz: cannot be read"):
        load_artefact(copy)
    with pytest.raises(DataError, match="manifest cannot be read"):
        load_manifest(tmp_path / "other.npz")
    with pytest.raises(FileError, match="cannot be written"):
        save_artefact(make_artefact({}, {}), copy.with_suffix(".json") / "x.npz")
