"""The data set as a file: named arrays in an npz, and a manifest beside it that says what they are.

The arrays' hashes are over their uncompressed content, so they outlive any change of compression. Loading checks
every one of them and names the part that is damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from factordiff.errors import DataError
from factordiff.files import read_regular, read_zip, write_together

SHIPPED = Path(__file__).parent / "data" / "rearc.npz"
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is written


@dataclass(frozen=True, eq=False)
class Artefact:
    """Named arrays and their manifest."""

    arrays: Mapping[str, np.ndarray]
    manifest: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        """The hash that names the whole data set."""
        name: str = self.manifest["sha256"]
        return name

    @cached_property
    def tasks(self) -> list[str]:
        """The ids of the tasks, sorted."""
        return decode_ids(self.arrays["tasks"])


def encode_ids(ids: list[str]) -> np.ndarray:
    """Task ids as an array of ASCII."""
    return np.array(ids, dtype="S8")


def decode_ids(ids: np.ndarray) -> list[str]:
    """Task ids as strings."""
    return [task.decode("ascii") for task in ids.tolist()]


def array_hash(array: np.ndarray) -> str:
    """The sha256 of an array's type, shape and content."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def make_artefact(arrays: Mapping[str, np.ndarray], description: Mapping[str, Any]) -> Artefact:
    """Arrays and a description become an artefact: the manifest gets the hash of each part and of the whole."""
    parts = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": array_hash(array)}
        for name, array in sorted(arrays.items())
    }
    whole = hashlib.sha256("".join(f"{name} {part['sha256']}\n" for name, part in parts.items()).encode())
    return Artefact(arrays, {"sha256": whole.hexdigest(), **description, "parts": parts})


def save_artefact(artefact: Artefact, file: Path) -> None:
    """Write the npz and its manifest; either both are replaced or, if something fails before, neither."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(artefact.arrays):
            member = zipfile.ZipInfo(f"{name}.npy", _ZIP_EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            content = io.BytesIO()
            np.lib.format.write_array(content, artefact.arrays[name], version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue(), compresslevel=9)
    contents = {
        file: packed.getvalue(),
        file.with_suffix(".json"): f"{json.dumps(artefact.manifest, indent=1)}\n".encode(),
    }
    write_together(contents)


def load_artefact(file: Path = SHIPPED) -> Artefact:
    """Read an artefact and check every part of it against the manifest."""
    manifest = load_manifest(file)
    try:
        packed = read_zip(file)
    except DataError as error:
        raise DataError(f"{error}; {_REMEDY}") from None
    try:
        with np.load(packed, allow_pickle=False) as archive:
            arrays = {name: _part(archive, name, file) for name in manifest["parts"]}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file}: not a readable npz file ({error}); {_REMEDY}") from None
    for name, part in manifest["parts"].items():
        found = array_hash(arrays[name])
        if found != part["sha256"]:
            raise DataError(
                f"{file}: part '{name}' has sha256 {found}, expected {part['sha256']}; it is damaged or belongs "
                f"to another data set; {_REMEDY}"
            )
    return Artefact(arrays, manifest)


def manifest_of(file: Path) -> Path:
    """Where an artefact's manifest is."""
    return file.parent / f"{file.stem}.json"


def load_manifest(file: Path = SHIPPED) -> dict[str, Any]:
    """The manifest beside an artefact."""
    beside = manifest_of(file)
    try:
        manifest = json.loads(read_regular(beside).decode())
    except DataError as error:
        what = str(error).removeprefix(f"{beside}: ")
        raise DataError(f"{beside}: the data set's manifest {what}; {_REMEDY}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{beside}: the data set's manifest is not JSON ({error}); {_REMEDY}") from None
    if (
        not isinstance(manifest, dict)
        or not isinstance(manifest.get("parts"), dict)
        or "sha256" not in manifest
    ):
        raise DataError(f"{beside}: expected an object with 'sha256' and 'parts'; {_REMEDY}")
    return manifest


def _part(archive: Any, name: str, file: Path) -> np.ndarray:
    try:
        part: np.ndarray = archive[name]
        return part
    except KeyError:
        raise DataError(f"{file}: part '{name}' is missing; {_REMEDY}") from None
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{file}: part '{name}' cannot be unpacked ({error}); {_REMEDY}") from None


_REMEDY = "reinstall factordiff, or rebuild with `factordiff data build`"
