"""Sets of commands: what all of them have in common, and the order in which they are listed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from factordiff.cli.whole_numbers import BoundedCommand

FIRST = ("demo", "play", "solve", "show", "experts", "infill")  # what a newcomer can look at


class Verbs(typer.Typer):
    """A set of commands, all of them bounded."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **settings: Any
    ) -> Callable[[Any], Any]:
        """Register a command; of another class only if that is bounded too."""

        def register(verb: Callable[..., Any]) -> Any:
            words = {"help": flowing(verb.__doc__ or ""), **settings}
            return super(Verbs, self).command(name, cls=cls or BoundedCommand, **words)(verb)

        return register


class NewcomersFirst(TyperGroup):
    """Commands in the order in which they are met, not in that of their files."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Those to look at first, then the others."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def flowing(text: str) -> str:
    """Paragraphs without the line breaks of the source, which would stand in the middle of a terminal's lines."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
