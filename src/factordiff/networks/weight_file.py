"""A weight file is compared with its configuration by its header, before a single weight is read."""

from __future__ import annotations

from pathlib import Path

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError

from factordiff.errors import CheckpointError
from factordiff.networks.parameters import Slot, Weights
from factordiff.schema.bound import shown
from factordiff.schema.json_file import check_regular

KINDS = ("F64", "F32", "F16", "BF16")  # numbers that weights may be stored in
OTHER = "were they saved with another config.json?"


def check_weights(path: Path, slots: dict[str, Slot]) -> None:
    """Refuse a file whose names, shapes or kinds of numbers are not those of `slots`; nothing of it is loaded.

    After it, what is allocated for these slots is what the file holds, give or take the precision.
    """
    check_regular(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            stored = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (it is no dictionary)
            found = {name: (tuple(one.get_shape()), str(one.get_dtype())) for name, one in stored.items()}
    except SafetensorError as error:
        raise damaged(path, error) from error
    missing, unknown = sorted(slots.keys() - found.keys()), sorted(found.keys() - slots.keys())
    if missing or unknown:
        first = f"{missing[0]} is missing" if missing else f"{shown(unknown[0])} is unknown"
        raise CheckpointError(
            f"{path}: the names of the weights do not match the configuration ({first}; in all {len(missing)} missing, "
            f"{len(unknown)} unknown); {OTHER}"
        )
    for name, (shape, kind) in found.items():
        if shape != slots[name].shape:
            raise CheckpointError(
                f"{path}: {name} has shape {shown(shape)}, expected {slots[name].shape}; {OTHER}"
            )
        if kind not in KINDS:
            raise CheckpointError(f"{path}: {name} is stored as {kind}, expected one of {', '.join(KINDS)}")


def read_weights(path: Path, slots: dict[str, Slot]) -> Weights:
    """The weights of a file, by name: exactly those of `slots`, and all of them finite."""
    check_weights(path, slots)
    try:
        weights = safetensors.torch.load(path.read_bytes())
    except SafetensorError as error:
        raise damaged(path, error) from error
    for name, weight in weights.items():
        if not bool(torch.isfinite(weight).all()):
            raise CheckpointError(f"{path}: {name} holds numbers that are not finite; train it again")
    return weights


def damaged(path: Path, error: SafetensorError) -> CheckpointError:
    """The error for a file that is not what its name says."""
    return CheckpointError(f"{path}: damaged or not a safetensors file ({shown(str(error))})")
