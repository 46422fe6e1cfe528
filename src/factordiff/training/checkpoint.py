"""Checkpoints that a kill cannot break.

A checkpoint is one safetensors file whose header holds the run's JSON and whose name holds the step and the
sha256 of all its bytes. It is written beside its destination, synced, and renamed; only then is an older one
removed. So at every moment the newest file with a matching digest is a whole checkpoint. The best weights of a
run that stops early lie in a file of their own, written before the checkpoint that names it.
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
from factordiff.files import TEMPORARY, write_whole

KEEP = 2
NAME = re.compile(r"(checkpoint|best)-(\d{9})-([0-9a-f]{64})\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """What was saved: named tensors, the rest as JSON values, and the best weights if they are kept."""

    tensors: dict[str, Tensor]
    run: dict[str, Any]
    best: Tensor | None = None


def make_folder(folder: Path) -> None:
    """Create a run's folder, make sure that it can be written to, and remove what a kill left half written."""
    write_whole(folder / "probe", b"")
    for path in [folder / "probe", *folder.glob(f"{TEMPORARY}*")]:
        with contextlib.suppress(OSError):
            path.unlink()


def save(folder: Path, step: int, checkpoint: Checkpoint, best_step: int = 0) -> Path:
    """Write a checkpoint and remove all but the last two."""
    run = dict(checkpoint.run)
    if checkpoint.best is not None:
        run["best"] = _write(folder, "best", best_step, {"best": checkpoint.best}, {}).name
    path = _write(folder, "checkpoint", step, checkpoint.tensors, run)
    _remove_old(folder)
    return path


def _write(folder: Path, kind: str, step: int, tensors: dict[str, Tensor], run: dict[str, Any]) -> Path:
    on_host = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    data = safetensors.torch.save(on_host, {"run": json.dumps(run, sort_keys=True)})
    path = folder / f"{kind}-{step:09d}-{hashlib.sha256(data).hexdigest()}.safetensors"
    if not (kind == "best" and path.exists()):  # the same best weights, written before
        write_whole(path, data)
    return path


def _remove_old(folder: Path) -> None:
    kept = _newest_first(folder)[:KEEP]
    needed = {path.name for path in kept}
    for path in kept:
        with contextlib.suppress(CheckpointError):  # a damaged one needs nothing
            needed.add(_parse(path)[1].get("best", ""))
    for path in folder.iterdir():
        if NAME.fullmatch(path.name) and path.name not in needed:
            with contextlib.suppress(OSError):  # someone else's permissions must not end a run that is well
                path.unlink()


def _newest_first(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("checkpoint-*") if NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.name[:20], path.stat().st_mtime_ns), reverse=True)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint; any change of any byte since it was written is an error."""
    tensors, run = _parse(path)
    best = _parse(path.parent / run["best"])[0]["best"] if "best" in run else None
    return Checkpoint(tensors, run, best)


def _parse(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    name = NAME.fullmatch(path.name)
    if name is None:
        raise CheckpointError(f"{path}: expected a file named checkpoint-STEP-SHA256.safetensors")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(data).hexdigest() != name.group(3):
        raise CheckpointError(
            f"{path}: the content does not match the digest in its name: the file is damaged"
        )
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return safetensors.torch.load(data), json.loads(header["__metadata__"]["run"])


def latest(folder: Path) -> tuple[Checkpoint, list[str]] | None:
    """The newest whole checkpoint, and a sentence for each damaged one passed over; None if there is none."""
    if not folder.is_dir():
        return None
    damaged: list[str] = []
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
