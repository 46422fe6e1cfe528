"""The docs become pages of HTML without asking any other machine, and what they link to comes along."""

from __future__ import annotations

import re
import socket
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs import build


class Reader(HTMLParser):
    """Collects what a page refers to, its names, and its words outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.words: list[str] = []
        self.inside_code = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside_code += tag in ("code", "pre")
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.references.append(value)
            if name == "id" and value:
                self.ids.add(value)

    def handle_endtag(self, tag: str) -> None:
        self.inside_code -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        if not self.inside_code:
            self.words.append(data)


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text())
    return reader


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def refuse(*_: object) -> None:
        raise AssertionError("the docs ask another machine for something")

    out = tmp_path_factory.mktemp("site") / "docs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        build.build(out)
    return out


def test_every_page_is_there(site: Path) -> None:
    assert (site / "index.html").exists()
    assert {page.stem for page in (site / "docs").glob("*.html")} == {
        page.stem for page in (build.ROOT / "docs").glob("*.md")
    }


def test_every_reference_is_within_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        for reference in read(page).references:
            if reference.startswith("https://"):
                continue  # for people to click on; nothing is loaded from there
            place, _, anchor = reference.partition("#")
            target = (page.parent / place).resolve() if place else page
            assert target.is_relative_to(site.resolve()), reference
            assert target.exists(), reference
            assert not anchor or anchor in read(target).ids, reference


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'(?:src|@import|url\()\s*=?\s*"?https?:|<script|<link', page.read_text())


def test_formulas_are_drawn(site: Path) -> None:
    methods = read(site / "docs" / "methods.html")
    drawn = [one for one in methods.references if one.startswith("../formulas/")]
    assert len(drawn) > 50
    for name in set(drawn):
        assert ElementTree.parse(site / "docs" / name).getroot().tag.endswith("svg")
    for page in site.rglob("*.html"):
        words = " ".join(read(page).words)
        assert "FORMULA" not in words
        assert not re.search(r"\$[^$]*\\", words), page.name


def test_a_formula_that_cannot_be_drawn_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nSee `$\\nonsense$` and $\\nonsense{x}$.\n")
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "PAGES", [page])
    with pytest.raises(SystemExit, match=r"page\.md: cannot draw \$\\nonsense\{x\}\$"):
        build.build(tmp_path / "out")
