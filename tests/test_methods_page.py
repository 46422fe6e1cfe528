"""The page of methods: a section for each, with a formula, its limits, the paper's number and the code that does it."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from factordiff import composition
from factordiff.composition.composition import Composition
from factordiff.composition.method import spec, specs
from tests.test_paper_map import cited, symbols
from tests.test_paper_map import section as rows_of_the_map
from tests.test_readme import distances

METHODS = list(specs())
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "methods.md").read_text()
SECTIONS = dict(re.findall(r"^## ([a-z-]+)\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE))
CODE = re.compile(r"\*\*Code:\*\* `(\w+)`.*?\((\.\./src/factordiff/([\w/]+)\.py)\)", re.DOTALL)


def test_every_method_has_a_section_and_a_row_in_order() -> None:
    assert set(SECTIONS) == set(METHODS)
    rows = re.findall(r"^\| \[`([a-z-]+)`\]\(#([a-z-]+)\) \|", PAGE, re.MULTILINE)
    assert rows == [(name, name) for name in SECTIONS]


@pytest.mark.parametrize("name", METHODS)
def test_a_section_says_all_that_it_should(name: str) -> None:
    text = SECTIONS[name]
    assert re.search(r"^\$\$.+\$\$$", text, re.MULTILINE)
    for heading in ("**Assumes**", "**Fails**", "**Paper:**", "**Code:**"):
        assert text.count(heading) == 1, heading


@pytest.mark.parametrize("name", METHODS)
def test_the_code_is_where_it_says_and_stands_for_the_papers_equations(name: str) -> None:
    found = CODE.search(SECTIONS[name])
    assert found is not None
    symbol, link, place = found.groups()
    assert (ROOT / "docs" / link).exists()
    module = importlib.import_module(f"factordiff.{place.replace('/', '.')}")
    assert getattr(module, symbol).__module__ == module.__name__
    paper = SECTIONS[name].split("**Paper:**")[1].split("**Code:**")[0]
    for number in cited(f"Paper:{paper}"):
        assert f"{place.replace('/', '.')}.{symbol}" in symbols(rows_of_the_map("Equations")[number]), number


@pytest.mark.parametrize(
    "name", sorted(set(METHODS) - {"vote"})
)  # a vote composes nothing: its runs are single
def test_the_section_names_the_composition_that_the_method_uses(name: str) -> None:
    objectives = {"single": ["full"], "views": ["occupancy", "color"]}.get(name, ["full", "full"])
    kind = type(spec(name).method({}, objectives).composition).__name__
    assert f"`{kind}`" in SECTIONS[name].split("**Code:**")[1]


def test_every_composition_is_on_the_page() -> None:
    for file in Path(composition.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"factordiff.composition.{file.stem}")
        for name, thing in inspect.getmembers(module, inspect.isclass):
            if issubclass(thing, Composition) and thing.__module__ == module.__name__:
                assert f"`{name}" in PAGE, name


def test_its_distances_are_the_readmes() -> None:
    measured = {number.split()[0] for number in distances().values()}
    shown = re.findall(
        r"TV (\d\.\d+)|(?<=, )(\d\.\d{3}) with eight|mixture has (\d\.\d+)", " ".join(PAGE.split())
    )
    quoted = {number for numbers in shown for number in numbers if number}
    assert len(quoted) > 10
    assert quoted <= measured, quoted - measured


def test_the_example_of_evidence_routing_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "methods.md", "exec"), names)
    assert names["drawn"].x_0[0, 1:3].tolist() == [1, 0]
    assert names["passes"].tolist() == [4]
