"""The options of every method as flags, made of the methods' own declarations: the same for every verb."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer
from rich.box import ROUNDED
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from factordiff.cli.whole_numbers import BoundedCommand

if TYPE_CHECKING:
    from factordiff.composition.options import Option

# What was typed; typer hands a command only what it declared itself.
_typed: ContextVar[dict[str, str]] = ContextVar("typed")


class MethodCommand(BoundedCommand):
    """A command that also takes `--temperatures`, `--beta` and whatever else some method declares."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the methods' options out; the others are the command's own."""
        typed, own = split(args, {flag: option.name for flag, (option, _) in flags().items()})
        _typed.set(typed)
        return super().parse_args(ctx, own)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The command's own help, and below it the options of the methods."""
        super().format_help(ctx, formatter)
        table = Table(box=None, show_header=False, expand=True)
        for flag, (option, takers) in flags().items():
            table.add_row(
                f"[bold cyan]{flag}[/]", f"{option.help} Takes {option.spelled}.", ", ".join(takers)
            )
        title = "Options of the methods, and who takes them"
        Console().print(Panel(table, title=title, title_align="left", box=ROUNDED, border_style="dim"))


def split(args: Sequence[str], names: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The options among the arguments whose flags are known, by name, and the rest of the arguments."""
    found: dict[str, str] = {}
    rest: list[str] = []
    left = list(args)
    while left:
        part = left.pop(0)
        flag, sign, value = part.partition("=")
        if part == "--":
            return found, [*rest, part, *left]
        if flag not in names:
            rest.append(part)
        elif sign or left:
            found[names[flag]] = value if sign else left.pop(0)
        else:
            raise typer.BadParameter(f"{flag} requires an argument.")
    return found, rest


def flags() -> dict[str, tuple[Option, list[str]]]:
    """Every option of some method by its flag, and the methods that take it."""
    from factordiff.composition.method import specs

    found: dict[str, tuple[Option, list[str]]] = {}
    for name, method in specs().items():
        for option in method.options:
            found.setdefault(f"--{option.name.replace('_', '-')}", (option, []))[1].append(name)
    return found


def given_options(method: str) -> dict[str, Any]:
    """The options that were typed, as the method reads them; one that it does not take is refused."""
    from factordiff.composition.method import spec

    declared = spec(method)
    return {name: declared.option(name).read(text) for name, text in _typed.get().items()}
