"""Whole numbers on the command line: each of them, of every verb, has a bound and a sentence."""

from __future__ import annotations

import re
import typing

import pytest
import typer
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.cli.whole_numbers import LARGEST, LARGEST_SEED, BoundedCommand
from tests.cli.verbs import options_of_kind, verbs

OPTIONS = options_of_kind(int)


def said(words: tuple[str, ...], option: str, value: str) -> tuple[int, str]:
    """The exit code and what was printed, when the option has that value and everything else that is needed some."""
    command = typing.cast(typing.Any, typer.main.get_command(app))
    for word in words:
        command = command.commands[word]
    needed: list[str] = []
    for parameter in command.params:
        if parameter.required:
            needed += [*(name for name in parameter.opts if name.startswith("--")), "x"]
    result = CliRunner().invoke(app, [*words, *needed, option, value], env={"COLUMNS": "200"})
    return result.exit_code, " ".join(re.sub("[─│╭╮╰╯]", " ", result.output).split())


def test_there_are_many() -> None:
    assert len(OPTIONS) > 50
    assert (("train",), "--max-steps") in OPTIONS
    assert (("data", "build"), "--workers") in OPTIONS


@pytest.mark.parametrize(
    ("words", "option"), OPTIONS, ids=[" ".join((*words, option)) for words, option in OPTIONS]
)
def test_a_number_beyond_64_bits_is_a_wrong_option(words: tuple[str, ...], option: str) -> None:
    for value in (2**64, -(2**64), 10**400):
        code, printed = said(words, option, str(value))
        assert code == 2, printed
        assert f"Invalid value for '{option}'" in printed
        assert "Traceback" not in printed
        assert len(printed) < 500


def test_every_verb_is_held_to_the_bound() -> None:
    for words, one in verbs():
        assert issubclass(one.cls, BoundedCommand), words


def test_the_bound_is_where_it_says() -> None:
    code, printed = said(("fit",), "--items", str(LARGEST + 1))
    assert code == 2
    assert f"expected a whole number from -{LARGEST} to {LARGEST}, got {LARGEST + 1}" in printed
    code, printed = said(("fit",), "--items", str(LARGEST))
    assert (code, "Invalid value" in printed) == (1, False)
    code, printed = said(("fit",), "--seed", str(-LARGEST_SEED))
    assert (code, "Invalid value" in printed) == (1, False)
    assert said(("fit",), "--seed", str(LARGEST_SEED + 1))[0] == 2
