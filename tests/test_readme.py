"""The README is short and runs, the tree is the tree, and figures are what is measured."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from docs import tree
from factordiff.experts.registry import SHIPPED
from factordiff.report.card import read_figures
from factordiff.toy.exactness import Measured, measurements

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PACKAGE = ROOT / "src" / "factordiff"


def test_the_example_has_twelve_lines_and_prints_what_it_says() -> None:
    code, output = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", README, re.DOTALL)[0]
    assert len(code.splitlines()) == 12
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


def files_in_the_tree(text: str) -> set[str]:
    """The paths that a tree names, from its indentation; a folder without code counts as itself."""
    found, folders = set(), []
    for line in text.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        folders[depth:] = []
        if name.endswith("/"):
            folders.append(name.rstrip("/"))
            found.add("/".join(folders) + "/")
        else:
            found.add("/".join([*folders, name]))
    return found


def files_that_exist() -> set[str]:
    """Every file of the package; those of a folder without code count as that folder."""
    found = set()
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            while not (path.parent / "__init__.py").exists():
                path = path.parent
            place = path.relative_to(PACKAGE).as_posix()
            if path.is_dir():
                found.add(f"{place}/")
            elif path.name == "__init__.py" and path.parent != PACKAGE:
                found.add(f"{path.parent.relative_to(PACKAGE).as_posix()}/")
            else:
                found.add(place)
    return found


def test_the_tree_names_every_file_and_no_other() -> None:
    shown = tree.PAGE.read_text().split("src/factordiff/\n")[1].removesuffix("```\n")
    named, there = files_in_the_tree(shown), files_that_exist()
    assert not there - named, f"not in docs/tree.md: {sorted(there - named)}; run `make tree`"
    assert not named - there, f"in docs/tree.md, but gone: {sorted(named - there)}; run `make tree`"


def test_every_line_of_the_tree_says_something() -> None:
    for line in tree.lines():
        assert re.match(r" +\S+ +\S.+(\.|\.\.\.)$", line), line


def test_a_tree_is_read_as_it_is_drawn() -> None:
    drawn = "  a.py    One.\n  b/      Two.\n    c.py  Three.\n    d/    Four.\n  e.py    Five."
    assert files_in_the_tree(drawn) == {"a.py", "b/", "b/c.py", "b/d/", "e.py"}


def distances() -> dict[tuple[str, str], str]:
    """World and method to the distance that docs/exactness.md shows."""
    rows = re.findall(
        r"^\| (two [^|]+?) \| ([^|]+?) \| [^|]+ \| ([^|]+?) \| (?:yes|no) \|$",
        (ROOT / "docs" / "exactness.md").read_text(),
        re.MULTILINE,
    )
    return {(world, method): distance for world, method, distance in rows}


def as_shown(row: Measured) -> str:
    if row.exact:
        return "0 (rounding)"
    noise = "" if row.noise is None else f" drawn ({row.noise:.3f})"
    return f"{row.distance:.3f}{noise}"


def test_enumerated_distances_are_the_measured_ones() -> None:
    measured = list(measurements(draws=32))
    assert set(distances()) == {(row.world, row.method) for row in measured}
    for row in measured:
        if row.noise is None:
            assert distances()[row.world, row.method] == as_shown(row)


@pytest.mark.slow
def test_drawn_distances_are_the_measured_ones() -> None:
    """The same seed draws the same numbers anywhere, so the figures are equal, not close."""
    assert distances() == {(row.world, row.method): as_shown(row) for row in measurements()}


def test_it_is_read_to_the_end() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []


WRITTEN_BY_HAND = [
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in (ROOT / "docs").glob("*.md") if page.name != "tree.md"),
]


@pytest.mark.parametrize("page", WRITTEN_BY_HAND, ids=lambda page: page.name)
def test_lines_are_short(page: Path) -> None:
    """Where Markdown can break them: not in tables, formulas and pictures."""
    lines = enumerate(page.read_text().splitlines(), start=1)
    unbreakable = ("|", "$$", "![", "<img")
    assert [number for number, line in lines if len(line) > 100 and not line.startswith(unbreakable)] == []


@pytest.mark.parametrize("name", ["trans-full", "conv-full", "trans-color"])
def test_the_experts_figures_are_those_of_their_cards(name: str) -> None:
    (row,) = (line for line in README.splitlines() if line.startswith(f"| [`{name}`]"))
    figures = read_figures(SHIPPED / name)
    assert figures is not None
    canvas, cut, published = (cell.strip("| ").split(" ")[0] for cell in row.split(" | ")[1:4])
    validation, official = figures.find("validation"), figures.find("official")
    assert validation is not None
    assert validation.cropped is not None
    assert [canvas, cut] == [f"{100 * share:.1f}" for share in (validation.exact, validation.cropped)]
    assert published == ("" if official is None else f"{100 * official.exact:.1f}")
    for found in filter(None, (validation, official)):
        assert found.queries in (4_800, 130) or f"of {found.queries}" in row


def test_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"(?:^|`|\()make ([a-z-]+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
