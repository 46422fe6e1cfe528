"""What a mutant is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """A wrong variant: what is wrong, how to make it so, and `module:test` (with its arguments) that must fail."""

    apply: Callable[[Patch], None]
    killed_by: str
    arguments: tuple[Any, ...] = ()


MUTANTS: dict[str, Mutant] = {}


def mutant(killed_by: str, *arguments: Any) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def register(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[apply.__name__] = Mutant(apply, killed_by, arguments)
        return apply

    return register


def after(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Let `change(result, *arguments)` alter what a function returns."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(original(*given, **named), *given, **named))
