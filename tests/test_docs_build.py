"""The docs become a site without asking any other machine, and what they speak of is in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import factordiff
from tests.docs_site import ROOT, build

pytestmark = pytest.mark.filterwarnings(
    "ignore:'myst_parser:PendingDeprecationWarning"
)  # its own affair with Sphinx
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]


class Reader(HTMLParser):
    """Collects what a page refers to, its names, its formulas, its words outside of code, and its sidebar."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.formulas = 0
        self.words: list[str] = []
        self.inside_code = 0
        self.inside_title = False
        self.sidebar: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.inside_code += tag in ("code", "pre", "script", "style")
        self.inside_title = tag == "title"
        self.formulas += "formula" in given.get("class", "").split()
        if tag == "a" and given.get("class", "").startswith(("reference internal", "current reference")):
            self.sidebar.append(given["href"])
        for name in ("href", "src"):
            if name in given:
                self.references.append(given[name])
                if tag != "a":
                    self.loaded.append(given[name])
        if "id" in given:
            self.ids.add(given["id"])

    def handle_endtag(self, tag: str) -> None:
        self.inside_code -= tag in ("code", "pre", "script", "style")
        self.inside_title = False

    def handle_data(self, data: str) -> None:
        if not self.inside_code and not self.inside_title:  # a formula's title is what was typed
            self.words.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    assert build(out) == []
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    """Every page of the site, read."""
    found = {}
    for page in site.rglob("*.html"):
        if "_downloads" not in page.parts:  # pages of their own, which the docs link to
            found[page.resolve()] = reader = Reader()
            reader.feed(page.read_text())
    return found


def test_every_page_is_there_and_in_the_sidebar(site: Path, pages: dict[Path, Reader]) -> None:
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()
    listed = {(site / link).resolve() for link in pages[(site / "index.html").resolve()].sidebar}
    for page in PAGES:
        built = (site / page.relative_to(ROOT)).with_suffix(".html").resolve()
        assert built in pages
        assert page == ROOT / "README.md" or built in listed, page


def test_the_order_is_that_of_a_reader(site: Path, pages: dict[Path, Reader]) -> None:
    listed = pages[(site / "index.html").resolve()].sidebar
    order = [
        listed.index(f"docs/{name}.html") for name in ("guide", "own-expert", "results/README", "api/README")
    ]
    assert order == sorted(order)
    assert order[0] == 0


def test_every_reference_is_within_the_site(site: Path, pages: dict[Path, Reader]) -> None:
    for page, reader in pages.items():
        for reference in set(reader.references):
            if reference.startswith("https://") and reference not in reader.loaded:
                continue  # for people to click on; nothing is loaded from there
            place, _, anchor = reference.partition("#")
            place = place.partition("?")[0]
            target = (page.parent / place).resolve() if place else page
            assert target.is_relative_to(site.resolve()), f"{page}: {reference}"
            assert target.exists(), f"{page}: {reference}"
            if anchor and target in pages:
                assert anchor in pages[target].ids, f"{page}: {reference}"


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Reader]) -> None:
    for page, reader in pages.items():
        assert not [one for one in reader.loaded if re.match(r"(\w+:)?//", one)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?\s*(https?:)?//", style.read_text()), style


def test_formulas_are_drawn(site: Path, pages: dict[Path, Reader]) -> None:
    assert pages[(site / "docs/methods.html").resolve()].formulas > 50
    assert pages[(site / "docs/api/composition.html").resolve()].formulas > 20
    for page, reader in pages.items():
        assert not re.search(r"\$[^$]*\\|:math:", " ".join(reader.words)), page


def test_every_public_name_has_an_entry(site: Path, pages: dict[Path, Reader]) -> None:
    api = [reader for page, reader in pages.items() if page.parent == (site / "docs/api").resolve()]
    for name in factordiff.__all__:
        assert sum(f"factordiff.{name}" in reader.ids for reader in api) == 1, name
    for reader in api:  # a signature that Sphinx cannot parse is shown raw, with such marks and without links
        assert not re.search(r"~\w+\.|<factory>", "".join(reader.words))
    composition = pages[(site / "docs/api/composition.html").resolve()]
    assert "each factor is routed to the expert that is surest about it" in " ".join(composition.words)
    assert any("composition/routing.html#L-" in one for one in composition.references)


def test_names_in_the_guide_lead_to_their_entries(site: Path, pages: dict[Path, Reader]) -> None:
    guide = pages[(site / "docs/guide.html").resolve()].references
    assert "api/teams.html#factordiff.compose" in guide
    assert "api/teams.html#factordiff.Team.sample" in guide
    teams = pages[(site / "docs/api/teams.html").resolve()].references
    assert "#factordiff.Team.sample" in teams  # in what Team says of itself, `sample` is its own


def test_words_can_be_searched(site: Path) -> None:
    index = json.loads(
        (site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")")
    )
    assert "docs/methods" in index["docnames"]
    assert "rout" in index["titleterms"] or "rout" in index["terms"]  # words are kept by their stems
    assert "Routing" in {name for entries in index["objects"].values() for *_, name in entries}


def test_what_is_wrong_with_a_page_is_said(tmp_path: Path) -> None:
    source = tmp_path / "pages"
    (source / "docs" / "api").mkdir(parents=True)
    (source / "README.md").write_text(
        "# A page\n\nSee `$\\nonsense$`,\n$\\nonsense{x}$ and [b](docs/b.md).\n"
    )
    (source / "docs" / "c.md").write_text("# In no list\n")
    (source / "docs/api/README.md").write_text("# API\n\n- `margin`\n- `Nobody`\n")
    told = "\n".join(build(tmp_path / "out", source))
    assert re.search(r"README\.md:\d+: WARNING: cannot draw \$\\nonsense\{x\}\$: .*Unknown symbol", told)
    assert told.count("cannot draw") == 1
    assert re.search(r"README\.md:\d+: WARNING: .*docs/b\.md", told)
    assert re.search(r"c\.md: WARNING: document isn't included in any toctree", told)
    assert 'the public name Routing has 0 entries, expected one: a line "- `Routing`"' in told
    assert "lists Nobody, which is no public name of factordiff: take it out" in told
