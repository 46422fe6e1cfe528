"""The paper map is complete, its symbols exist, and the docstrings agree with it."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.cli.app import app
from factordiff.experiments.catalogue import EXPERIMENTS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "factordiff"
MAP = (ROOT / "docs" / "paper-map.md").read_text()
EQUATIONS, TABLES, FIGURES = 32, 8, 11


def section(title: str) -> dict[int, str]:
    """The rows of a section of the map: number to the "where" column."""
    text = MAP.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \(?(\d+)\)? \|.*?\| (.+) \|$", text, re.MULTILINE)
    return {int(number): where for number, where in rows}


def symbols(where: str) -> list[str]:
    """The dotted names in a row; commands and keywords are not among them."""
    return re.findall(r"`([a-z_]+(?:\.\w+)+)`", where)


def cited(docstring: str) -> set[int]:
    """The equation numbers that a docstring cites after "Paper:"; ranges are spelled out."""
    numbers: set[int] = set()
    for citation in re.findall(r"Paper:(.*?)(?:\n\s*\n|$)", docstring, re.DOTALL):
        for first, last in re.findall(r"\((\d+)\)(?:-\((\d+)\))?", citation):
            numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def citations(place: str, source: str) -> Iterator[tuple[str, int]]:
    """Every (symbol, equation) that the docstrings of a file claim."""
    module = place.removesuffix(".py").replace("/", ".")

    def visit(node: ast.AST, name: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}"
                yield from ((inner, number) for number in sorted(cited(ast.get_docstring(child) or "")))
                yield from visit(child, inner)

    return visit(ast.parse(source), module)


def missing(pairs: Iterator[tuple[str, int]], rows: dict[int, str]) -> list[str]:
    """The citations that the map does not know."""
    return [
        f"{symbol} cites Eq. ({number}), which the map gives to {rows.get(number, 'nobody')}"
        for symbol, number in pairs
        if symbol not in symbols(rows.get(number, ""))
    ]


def all_citations() -> Iterator[tuple[str, int]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield from citations(path.relative_to(SOURCE).as_posix(), path.read_text())


@pytest.mark.parametrize(
    ("title", "count"), [("Equations", EQUATIONS), ("Tables", TABLES), ("Figures", FIGURES)]
)
def test_every_number_has_a_row(title: str, count: int) -> None:
    assert sorted(section(title)) == list(range(1, count + 1))


def test_every_symbol_exists() -> None:
    for name in sorted(set(symbols(MAP))):
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            path = SOURCE.joinpath(*parts[:length])
            if path.with_suffix(".py").exists() or path.is_dir():
                thing = import_module(".".join(["factordiff", *parts[:length]]))
                break
        else:
            pytest.fail(f"{name} is in no file")
        for attribute in parts[length:]:
            thing = getattr(thing, attribute)


def commands(where: str) -> list[list[str]]:
    """The commands in a row, as words after `factordiff`."""
    return [shlex.split(words) for words in re.findall(r"`factordiff ([^`]+)`", where)]


def test_every_table_and_figure_has_a_symbol_or_a_command() -> None:
    for title in ("Tables", "Figures"):
        for number, where in section(title).items():
            assert symbols(where) or commands(where) or where == "the same", f"{title} {number}: {where}"


def test_every_command_is_one() -> None:
    verbs = typer.main.get_command(app)
    for verb, *words in commands(MAP):
        command = verbs.commands[verb]  # type: ignore[attr-defined]
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, f"{verb} {words}"
        if verb == "reproduce":
            assert words[0] in EXPERIMENTS


def test_every_experiment_is_on_the_map() -> None:
    found = {words[1] for words in commands(MAP) if words[0] == "reproduce"}
    assert found == EXPERIMENTS.keys() - {
        "official",
        "relatives",
        "four",
        "default-head",
    }  # which the paper does not have


def test_docstrings_agree_with_the_map() -> None:
    assert not missing(all_citations(), section("Equations"))


def test_the_docstrings_of_the_core_do_cite() -> None:
    assert ("composition.routing.route", 11) in set(all_citations())
    assert ("diffusion.objectives.occupancy", 30) in set(all_citations())


def test_a_wrong_number_is_noticed() -> None:
    wrong = 'def route(x):\n    """The routing map. Paper: Eq. (12)."""'
    assert missing(citations("composition/routing.py", wrong), section("Equations"))
    right = 'def route(x):\n    """The routing map. Paper: Eq. (11)."""'
    assert not missing(citations("composition/routing.py", right), section("Equations"))


def test_an_undocumented_citation_is_noticed() -> None:
    unknown = 'class A:\n    """An A."""\n    def f(self):\n        """F. Paper: Eq. (33)."""'
    assert missing(citations("experts/x.py", unknown), section("Equations")) == [
        "experts.x.A.f cites Eq. (33), which the map gives to nobody"
    ]


@pytest.mark.parametrize(
    ("docstring", "numbers"),
    [
        ("Paper: Eq. (3), (7).", {3, 7}),
        ("Paper: Eq. (8) with one-hot weights, Eq. (10)-(12), Table 2.", {8, 10, 11, 12}),
        ("As in Eq. (13). No citation.", set()),
        ("One. Paper: appendix.\n\nNot (5).", set()),
    ],
)
def test_citations_are_read(docstring: str, numbers: set[int]) -> None:
    assert cited(docstring) == numbers
