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

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from factordiff.errors import CheckpointError, InvalidInput
from factordiff.files import TEMPORARY, write_whole
from factordiff.networks.weight_file import damaged
from factordiff.schema.bound import shown
from factordiff.schema.json_file import check_regular, parse_object

KEEP = 2
WEIGHTS = ("weights", "ema")  # what of a run's tensors are weights
OTHER_RUN = "it is of another run; use another folder with --out"
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
    return sorted(found, key=lambda path: (path.name[:20], path.lstat().st_mtime_ns), reverse=True)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint; any change of any byte since it was written is an error."""
    tensors, run = _parse(path)
    return Checkpoint(tensors, run, _read_best(path, run["best"]) if "best" in run else None)


def _read_best(path: Path, name: Any) -> Tensor:
    """The best weights, from the file that a checkpoint names: one of this kind, in the same folder."""
    named = NAME.fullmatch(name) if isinstance(name, str) else None
    if named is None or named.group(1) != "best":
        raise CheckpointError(f"{path}: best: expected best-STEP-SHA256.safetensors, got {shown(name)}")
    tensors, _ = _parse(path.parent / name)
    if "best" not in tensors:
        raise CheckpointError(f"{path.parent / name}: it holds no best weights")
    return tensors["best"]


def restore(saved: Checkpoint, state: dict[str, Tensor], path: Path) -> None:
    """Put a checkpoint's tensors into those of a run; one that is missing or of another kind is refused before that."""
    weights = {name: state[name] for name in WEIGHTS if name in state}
    for name, tensor in state.items():
        found = saved.tensors.get(name)
        if found is None:
            raise CheckpointError(f"{path}: the checkpoint lacks {name}; {OTHER_RUN}")
        if found.shape != tensor.shape or found.is_floating_point() != tensor.is_floating_point():
            raise CheckpointError(
                f"{path}: {name} is {_kind(found)} in the checkpoint and {_kind(tensor)} in this run; {OTHER_RUN}"
            )
    best = {} if saved.best is None else {"best": saved.best}
    for name, tensor in ({name: saved.tensors[name] for name in weights} | best).items():
        if tensor.shape != state["weights"].shape or not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path}: {name} holds no finite weights of this network; {OTHER_RUN}")
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(saved.tensors[name])


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def _parse(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    name = NAME.fullmatch(path.name)
    if name is None:
        raise CheckpointError(f"{path}: expected a file named checkpoint-STEP-SHA256.safetensors")
    try:
        check_regular(path)
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(data).hexdigest() != name.group(3):
        raise CheckpointError(
            f"{path}: the content does not match the digest in its name: the file is damaged"
        )
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        return safetensors.torch.load(data), parse_object(metadata.get("run", ""))
    except SafetensorError as error:
        raise damaged(path, error) from error
    except InvalidInput as error:
        raise CheckpointError(f"{path}: it does not say what run it is of ({error})") from error


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
