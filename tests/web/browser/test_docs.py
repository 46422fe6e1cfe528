"""The docs in a real browser, opened as files: phone, dark, search, print; no other machine is asked for anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.docs_site import build

pytestmark = pytest.mark.filterwarnings(
    "ignore:'myst_parser:PendingDeprecationWarning"
)  # its own affair with Sphinx
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    assert build(out) == []
    return out


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    """A page that fails the test if it complains, or asks for anything that is not a file."""
    page, wrong = browser.new_page(), []
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else wrong.append(r.url))
    yield page
    page.close()
    assert not wrong


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_no_page_scrolls_sideways(page: Page, site: Path, size: dict[str, int]) -> None:
    page.set_viewport_size(size)
    for file in [*site.glob("*.html"), *(site / "docs").rglob("*.html")]:
        page.goto(file.as_uri())
        assert page.evaluate(OVERFLOW) <= 0, file


def test_wide_tables_and_formulas_scroll_in_their_own_box(page: Page, site: Path) -> None:
    page.set_viewport_size(PHONE)
    page.goto((site / "docs/methods.html").as_uri())
    for box in (".table-wrapper", ".formula-line"):
        wide = "boxes => boxes.filter(one => one.scrollWidth > one.clientWidth)"
        scrolls = "one => ['auto', 'scroll'].includes(getComputedStyle(one).overflowX)"
        assert page.locator(box).evaluate_all(f"boxes => ({wide})(boxes).length") > 0
        assert page.locator(box).evaluate_all(f"boxes => ({wide})(boxes).every({scrolls})")


def test_a_word_is_found_with_an_excerpt(page: Page, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    page.get_by_role("searchbox").or_(page.get_by_placeholder("Search")).first.fill("Fréchet")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li").filter(
        has=page.get_by_role("link", name="Sampling", exact=True)
    )
    expect(found.locator("p.context")).to_contain_text("inequality")
    found.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Sampling")


def test_a_name_leads_to_its_entry_and_on_to_its_code(page: Page, site: Path) -> None:
    page.goto((site / "docs/methods.html").as_uri())
    page.get_by_role("link", name="SoftRouting", exact=True).first.click()
    entry = page.locator("dt[id='factordiff.SoftRouting']")
    expect(entry).to_be_in_viewport()
    entry.locator(".viewcode-link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("composition/routing.py")
    expect(page.locator(":target")).to_have_text("@declare(\n")  # where the class begins


def test_formulas_have_the_color_of_the_text(page: Page, site: Path) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto((site / "docs/methods.html").as_uri())
        formula = page.locator("article p svg.formula").first
        assert formula.evaluate("one => getComputedStyle(one).fill") == formula.evaluate(
            "one => getComputedStyle(one.parentElement).color"
        )
        sizes = formula.evaluate("one => [one.getBBox().width, one.getBoundingClientRect().width]")
        assert min(sizes) > 0  # something is drawn


def test_on_paper_there_is_text_alone(page: Page, site: Path) -> None:
    page.emulate_media(media="print")
    page.goto((site / "docs/guide.html").as_uri())
    for around in (".sidebar-drawer", ".toc-drawer", ".skip-to-content", ".content-icon-container"):
        expect(page.locator(around).first).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert page.locator("article pre").evaluate_all(cut) == 0
