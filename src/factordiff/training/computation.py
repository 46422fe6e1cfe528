"""How a step is computed on a device: precision, compilation, recording. None of it changes what is computed."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from factordiff.errors import Unavailable
from factordiff.sampling.request import check_memory
from factordiff.training.machines import Machines
from factordiff.training.settings import TrainingSettings
from factordiff.training.source import Source


def decided(settings: TrainingSettings, device: torch.device, machines: Machines) -> TrainingSettings:
    """The settings with every `auto` decided for this device."""
    gpu = device.type == "cuda"
    alone = machines.world == 1
    if settings.graph == "on" and not (gpu and alone):
        raise Unavailable("graph: recording a step needs one GPU and one process; use --graph off")
    if settings.dtype == "bfloat16" and device.type == "mps":
        raise Unavailable("dtype: bfloat16 is not supported on mps here; use --dtype float32")
    automatic: dict[str, Any] = {
        "compile": "blocks" if gpu else "none",
        "graph": "on" if gpu and alone else "off",
        "kernels": "on" if gpu and settings.compile != "none" else "off",
        "dtype": "bfloat16" if gpu else "float32",
        "newton_schulz": "bfloat16" if gpu else "float32",
    }
    chosen = {name: value for name, value in automatic.items() if getattr(settings, name) == "auto"}
    return dataclasses.replace(settings, **chosen)


def check_batch(batch: int, source: Source, device: torch.device, machines: Machines) -> None:
    """Refuse a batch of which not even the answers fit into memory, before anything is drawn."""
    rows = -(-batch // machines.world)
    bytes_per_row = 4 * source.cells * source.vocabulary.size
    check_memory(rows, bytes_per_row, device, "batch", "items", "use a smaller --batch, or more machines")
