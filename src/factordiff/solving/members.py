"""The members of a team: experts by name, from folders, or objects; and the device they are on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.expert import Expert
from factordiff.experts.network import Network
from factordiff.experts.store import load_expert, read_config
from factordiff.experts.whereabouts import find_expert, told_apart
from factordiff.training.machines import choose_device

ExpertLike = str | Path | Expert


@dataclass(frozen=True)
class Member:
    """An expert, what it is called and what it was trained on."""

    name: str
    expert: Expert
    objective: str = "full"
    folder: Path | None = None  # where it was loaded from

    def __repr__(self) -> str:
        return f"{self.name} ({self.objective})"


def device_named(device: torch.device | str | None) -> torch.device:
    """The device, found out to be there before an expert is loaded onto it; `cuda:1` is one of several.

    None is torch's own default, which is the CPU unless somebody set another.
    """
    device = torch.get_default_device() if device is None else device
    kind = device.type if isinstance(device, torch.device) else device.partition(":")[0]
    chosen = choose_device(kind)
    try:
        return chosen if kind == device else torch.device(device)
    except RuntimeError:
        raise Unavailable(f"device: expected a name such as cpu, cuda or cuda:1, got {device!r}") from None


def member_of(name: str | None, expert: ExpertLike, number: int, device: torch.device) -> Member:
    """The member that a person named: a shipped expert, a folder, or an object that is an expert."""
    if isinstance(expert, str | Path):
        found = find_expert(expert)
        objective = str(read_config(found.folder).get("about", {}).get("objective", "full"))
        return Member(name or found.name, load_expert(found.folder, device), objective, found.folder)
    if not isinstance(expert, Expert):
        raise InvalidInput(
            f"experts: number {number + 1} is a {type(expert).__name__}, expected a name, a folder, or an object with "
            "vocabulary, encode and log_probs"
        )
    if isinstance(expert, torch.nn.Module) and expert.training and not isinstance(expert, Network):
        raise InvalidInput(
            f"experts: number {number + 1}, a {type(expert).__name__}, is in training mode, where dropout and the like "
            "draw numbers of their own; call .eval() on it first"
        )
    return Member(name or f"expert {number + 1}", expert)


def with_names_apart(members: list[Member]) -> list[Member]:
    """The same members, none of them called as another is."""
    names = told_apart([member.name for member in members])
    return [replace(member, name=name) for member, name in zip(members, names, strict=True)]
