"""The report in a real browser: a first screen, a phone without sideways scrolling, folded tables, paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

REPORT = Path(__file__).parents[3] / "docs" / "results" / "report.html"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true })"


@pytest.fixture
def report(browser: BrowserContext) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(REPORT.as_uri())
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
    report.evaluate("dispatchEvent(new Event('afterprint'))")
    assert report.locator("details[open]").count() == 0
