"""An expert with its name, what it was trained on and where it was loaded from; and the one loader of all verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.registry import find_expert
from factordiff.networks.store import load_expert, read_config, weight_hash


@dataclass(frozen=True)
class NamedExpert:
    """An expert, what it is called and what it was trained on."""

    name: str
    expert: Expert
    objective: str = "full"
    folder: Path | None = None  # where it was loaded from
    config: Mapping[str, Any] = field(default_factory=dict, compare=False)  # of that folder

    @cached_property
    def sha256(self) -> str:
        """The hash of its weights: which ones a figure was measured with."""
        if self.folder is None:
            raise InvalidInput(f"experts: {self.name} is an object; only an expert in a folder has a hash")
        return weight_hash(self.folder)

    def __repr__(self) -> str:
        return f"{self.name} ({self.objective})"


def load_named(
    expert: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> NamedExpert:
    """A shipped expert, one in a folder, or that of a training run, frozen; called by its folder's name."""
    found = find_expert(expert)
    config = read_config(found.folder)
    objective = str(config.get("about", {}).get("objective", "full"))
    return NamedExpert(found.name, load_expert(found.folder, device, dtype), objective, found.folder, config)
