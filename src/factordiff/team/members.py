"""The members of a team: experts by name, from folders, or objects; and the device they are on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.registry import LONGEST_NAME, distinct_names
from factordiff.networks.named import NamedExpert, load_named
from factordiff.networks.network import Network
from factordiff.printable import printable
from factordiff.schema.bound import shown
from factordiff.vocabulary import Vocabulary

ExpertLike = str | Path | Expert


def named_expert(name: str | None, expert: ExpertLike, number: int, device: torch.device) -> NamedExpert:
    """The member that a person named: a shipped expert, a folder, or an object that is an expert.

    A name may come from a stranger's file: what would steer a terminal is escaped.
    """
    if not isinstance(name, str | None):
        raise InvalidInput(
            f"experts: number {number + 1} is called {shown(name)}, expected a name in letters"
        )
    name = None if name is None else printable(name, LONGEST_NAME)
    if isinstance(expert, str | Path):
        loaded = load_named(expert, device)
        return replace(loaded, name=name or loaded.name)
    if isinstance(expert, type):
        raise InvalidInput(
            f"experts: number {number + 1} is the class {expert.__name__}, expected an expert made of it: "
            f"{expert.__name__}(...)"
        )
    if not isinstance(expert, Expert):
        wrapped = "; wrap a language model: MaskedLanguageModel(model)" if hasattr(expert, "config") else ""
        raise InvalidInput(
            f"experts: number {number + 1} is a {type(expert).__name__}, expected a name, a folder, or an object with "
            f"vocabulary, encode and log_probs{wrapped}"
        )
    if not isinstance(expert.vocabulary, Vocabulary):
        raise InvalidInput(
            f"experts: number {number + 1}, a {type(expert).__name__}, has {shown(expert.vocabulary)} as its "
            "vocabulary, expected Vocabulary(number of values)"
        )
    if isinstance(expert, torch.nn.Module) and expert.training and not isinstance(expert, Network):
        raise InvalidInput(
            f"experts: number {number + 1}, a {type(expert).__name__}, is in training mode, where dropout and the like "
            "draw numbers of their own; call .eval() on it first"
        )
    return NamedExpert(name or f"expert {number + 1}", expert)


def with_names_apart(members: list[NamedExpert]) -> list[NamedExpert]:
    """The same members, none of them called as another is."""
    names = distinct_names([member.name for member in members])
    return [replace(member, name=name) for member, name in zip(members, names, strict=True)]
