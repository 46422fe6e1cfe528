"""The verbs of the command line as they are declared, and what kind of value each of their options takes."""

from __future__ import annotations

import typing
from collections.abc import Iterator

import typer

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.cli.app import app

Words = tuple[str, ...]


def verbs(of: typer.Typer = app, before: Words = ()) -> Iterator[tuple[Words, typing.Any]]:
    """Every verb by its words, such as (data, build), with what was declared of it."""
    for one in of.registered_commands:
        assert one.callback is not None
        yield (*before, one.name or one.callback.__name__), one
    for group in of.registered_groups:
        assert group.typer_instance is not None
        assert group.name is not None
        yield from verbs(group.typer_instance, (*before, group.name))


def options_of_kind(*kinds: type) -> list[tuple[Words, str]]:
    """Every verb with every option of it that takes such values, by the annotations of its function."""
    return [
        (words, f"--{name.replace('_', '-')}")
        for words, one in verbs()
        for name, kind in typing.get_type_hints(one.callback).items()
        if {kind, *typing.get_args(kind)} & set(kinds)
    ]
