"""The report in a real browser: a first screen, a phone without sideways scrolling, folded tables, paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

REPORT = Path(__file__).parents[3] / "docs" / "results" / "report.html"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HEIGHTS = "images => images.map((image) => image.getBoundingClientRect().height)"
UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true })"


A4 = {"width": 718, "height": 1047}  # in pixels, within Chromium's margins


@pytest.fixture
def report(browser: BrowserContext, tmp_path: Path) -> Iterator[Page]:
    """The report that is there, in the style of today."""
    style = (files("factordiff.report") / "page.css").read_text()
    styled = re.sub(
        r"<style>.*?</style>", lambda _: f"<style>{style}</style>", REPORT.read_text(), flags=re.DOTALL
    )
    copy = tmp_path / "report.html"
    copy.write_text(styled)
    page = browser.new_page()
    page.goto(copy.as_uri())
    yield page
    page.close()


def test_a_phone_scrolls_down_alone_folded_or_not(report: Page) -> None:
    report.set_viewport_size({"width": 390, "height": 844})
    assert report.evaluate(OVERFLOW) == 0
    report.evaluate(UNFOLD)
    assert report.evaluate(OVERFLOW) == 0


def test_the_first_screen_of_a_desk_has_question_findings_and_picture(report: Page) -> None:
    report.set_viewport_size({"width": 1280, "height": 900})
    for selector in (".opening p", ".opening li:last-child", ".opening img"):
        place = report.locator(selector).first.bounding_box()
        assert place is not None
        assert place["y"] < 900, selector
    assert report.locator("details[open]").count() == 0
    assert report.locator("nav a").count() == report.locator("h2").count()


def test_on_paper_everything_is_unfolded_and_nothing_is_cut(report: Page) -> None:
    report.set_viewport_size({"width": 1280, "height": 900})
    folded = report.locator("details").count()
    report.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert report.locator("details[open]").count() == folded > 0
    report.emulate_media(media="print")
    assert not report.locator("nav").is_visible()
    report.set_viewport_size(A4)
    assert report.evaluate(OVERFLOW) == 0
    cell = report.locator("tbody td").first
    assert cell.evaluate("cell => getComputedStyle(cell).display") == "table-cell"  # paper is no phone
    assert all(height < 450 for height in report.locator("figure img").evaluate_all(HEIGHTS))
    report.evaluate("dispatchEvent(new Event('afterprint'))")
    assert report.locator("details[open]").count() == 0
