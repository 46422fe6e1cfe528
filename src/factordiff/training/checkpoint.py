"""Checkpoints that a kill cannot break.

A checkpoint is one safetensors file whose header holds the run's JSON and whose name holds the step and the
sha256 of all its bytes. It is written beside its destination, synced, and renamed; only then is an older one
removed. So at every moment the newest file with a matching digest is a whole checkpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from factordiff.errors import CheckpointError
from factordiff.experts.store import TEMPORARY, write_whole

KEEP = 2
NAME = re.compile(r"checkpoint-(\d{9})-([0-9a-f]{64})\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """What was saved: named tensors, and everything else as JSON values."""

    tensors: dict[str, Tensor]
    run: dict[str, Any]


def make_folder(folder: Path) -> None:
    """Create a run's folder and make sure that it can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(
            f"{folder}: cannot be created ({error.strerror}); choose another --out"
        ) from error
    write_whole(folder / "probe", b"")
    (folder / "probe").unlink()


def save(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint and remove all but the last two."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in checkpoint.tensors.items()
    }
    data = safetensors.torch.save(tensors, {"run": json.dumps(checkpoint.run, sort_keys=True)})
    path = folder / f"checkpoint-{step:09d}-{hashlib.sha256(data).hexdigest()}.safetensors"
    write_whole(path, data)
    for old in _newest_first(folder)[KEEP:]:
        with contextlib.suppress(OSError):  # someone else's permissions must not end a run that is well
            old.unlink()
    return path


def _newest_first(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.name, path.stat().st_mtime_ns), reverse=True)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint; any change of any byte since it was written is an error."""
    name = NAME.fullmatch(path.name)
    if name is None:
        raise CheckpointError(f"{path}: expected a file named checkpoint-STEP-SHA256.safetensors")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(data).hexdigest() != name.group(2):
        raise CheckpointError(
            f"{path}: the content does not match the digest in its name: the file is damaged"
        )
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return Checkpoint(safetensors.torch.load(data), json.loads(header["__metadata__"]["run"]))


def latest(folder: Path) -> tuple[Checkpoint, list[str]] | None:
    """The newest whole checkpoint, with a sentence for each damaged one that was passed over; None if there is none."""
    damaged: list[str] = []
    if not folder.is_dir():
        return None
    found = _newest_first(folder)
    for path in found:
        try:
            return read(path), damaged
        except CheckpointError as error:
            damaged.append(str(error))
    if found:
        raise CheckpointError(
            f"{folder}: none of the {len(found)} checkpoints can be used: {'; '.join(damaged)}. "
            "Start again without --resume in another folder"
        )
    return None


def sweep(folder: Path) -> None:
    """Remove what a killed run left half written."""
    for path in folder.glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):
            path.unlink()
