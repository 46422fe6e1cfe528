"""The experts that a server has loaded, by name: those of grids, which it was given, and the shipped ones of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from factordiff.arc.grid import COLORS
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.registry import shipped_experts
from factordiff.networks.named import NamedExpert, load_named
from factordiff.text.alphabet import BYTES
from factordiff.vocabulary import Vocabulary
from factordiff.web.familiarity import KnownTasks


@dataclass(frozen=True, repr=False)
class RegisteredExpert(NamedExpert):
    """An expert, and what a page can say about it."""

    about: dict[str, Any] = field(default_factory=dict)


class ExpertRegistry:
    """Experts in a fixed order, found by name."""

    def __init__(
        self,
        entries: Iterable[RegisteredExpert],
        device: torch.device | str = "cpu",
        vocabulary: Vocabulary = COLORS,
    ) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self.device = torch.device(device)
        self.known = KnownTasks()
        if not self.entries:
            raise InvalidInput("experts: expected at least one name or folder, got none")
        for entry in self.entries.values():
            if entry.expert.vocabulary != vocabulary:
                raise InvalidInput(
                    f"experts: {entry.name} speaks of {entry.expert.vocabulary.size} values, "
                    f"expected the {vocabulary.size} {'colors' if vocabulary == COLORS else 'characters'}"
                )

    @classmethod
    def load(
        cls, experts: Sequence[str], device: torch.device | str = "cpu", vocabulary: Vocabulary = COLORS
    ) -> ExpertRegistry:
        """Shipped experts by name and others by folder; a folder is called by its last name."""
        entries: list[RegisteredExpert] = []
        for given in experts:
            loaded = load_named(given, device)
            config = loaded.config
            about = {"backbone": config["backbone"], "parameters": config.get("parameters")}
            name = _unused(loaded.name, [entry.name for entry in entries])
            entries.append(
                RegisteredExpert(name, loaded.expert, loaded.objective, loaded.folder, about=about)
            )
        return cls(entries, device, vocabulary)

    def __getitem__(self, name: str) -> RegisteredExpert:
        if name not in self.entries:
            raise Unavailable(f"experts: expected some of {', '.join(self.entries)}, got {name!r}")
        return self.entries[name]

    def __len__(self) -> int:
        return len(self.entries)

    def names(self) -> list[str]:
        """In the order they were given, which is also the order of ties."""
        return list(self.entries)


def _unused(name: str, taken: Sequence[str]) -> str:
    """The name, with a number behind it if another expert has it."""
    number, unused = 2, name
    while unused in taken:
        unused, number = f"{name}-{number}", number + 1
    return unused


def text_names() -> list[str]:
    """The shipped experts of text: specialists first, then the generalist."""
    return sorted(shipped_experts(of_text=True), key=lambda name: (name == "text-all", name != "text-prose"))


@cache
def text_experts(device: torch.device | str) -> ExpertRegistry:
    """Those, loaded when somebody first asks for them."""
    return ExpertRegistry.load(text_names(), device, BYTES)
