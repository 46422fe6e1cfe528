"""The page of texts: write, hide, fill in, look at a character, and come back to it by a link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.browser.barriers import barriers
from tests.web.browser.conftest import Watched
from tests.web.browser.test_first import SIZES
from tests.web.browser.test_reach import keep, tab_to
from tests.web.serving import Served

SENTENCE = "The value of the key is not in the list."


@pytest.fixture
def texts(browser: BrowserContext, live: Served) -> Iterator[Watched]:
    watched = Watched(browser, live)
    watched.address = f"http://127.0.0.1:{live.port}/texts.html"
    yield watched
    for page in browser.pages[1:]:
        page.evaluate("localStorage.clear()")
        page.close()
    assert not watched.complaints
    assert {urlsplit(url).hostname for url in watched.requests} == {"127.0.0.1"}


def write(page: Page, text: str) -> None:
    page.fill("#editor textarea", text)


def select(page: Page, begin: int, end: int) -> None:
    page.locator("#editor textarea").evaluate(
        "(one, at) => { one.focus(); one.setSelectionRange(...at); }", [begin, end]
    )


def hide(page: Page, begin: int, end: int) -> None:
    select(page, begin, end)
    page.click("#hide")


def marked(page: Page) -> list[str]:
    return page.locator(".text-marks mark").all_text_contents()


def fill_in(page: Page) -> None:
    page.click("#solve")
    filled(page)


def filled(page: Page) -> None:
    expect(page.locator("#status")).to_contain_text(" right · ", timeout=90_000)


def panel(page: Page, number: int) -> str:
    """The text of a panel as it stands there, line by line."""
    rows = page.locator(".story-panel").nth(number).locator(".text-row").all_text_contents()
    return "\n".join(row.removesuffix("↵") for row in rows)


def test_the_passage_of_the_story_together_and_alone(texts: Watched) -> None:
    page = texts.open(still=True)
    text = page.input_value("#editor textarea")
    assert sum(map(len, marked(page))) == 41
    fill_in(page)
    expect(page.locator("#status")).to_contain_text("41 of 41 hidden characters right")
    assert page.locator(".story-panel .chip").all_text_contents() == [
        "✓ right",
        "✗ 2 characters wrong",
        "✗ 5 characters wrong",
    ]
    assert panel(page, 0) == text.removesuffix("\n")
    legends = page.locator(".story-panel .legend:visible")
    expect(legends).to_have_count(1)  # of those together; what the colors mean is nowhere else
    expect(legends).to_contain_text("B: 5 characters")
    page.locator(".story-panel").nth(0).locator(".ch").nth(7).hover()
    expect(page.locator("#inspector .voice")).to_have_count(2)
    expect(page.locator("#inspector")).to_contain_text("decided in step")
    page.locator("#scrub").fill("0")
    assert page.locator(".story-panel").nth(0).locator(".hidden-cell").count() == 41


def test_where_nobody_decides_alone_no_colors_are_explained(texts: Watched) -> None:
    page = texts.open(still=True)
    page.uncheck("#alone")
    page.locator('[data-name="method"]').select_option("product")
    fill_in(page)
    expect(page.locator(".story-panel .chip")).not_to_be_empty()
    expect(page.locator(".story-panel .legend:visible")).to_have_count(0)


def test_a_text_of_ones_own(texts: Watched) -> None:
    page = texts.open(still=True)
    write(page, SENTENCE)
    assert marked(page) == []
    page.click("#solve")
    expect(page.locator("#alert")).to_contain_text("Nothing is hidden")
    hide(page, 10, 12)
    hide(page, 20, 23)
    assert marked(page) == ["of", " is"]
    page.uncheck("#alone")
    fill_in(page)
    expect(page.locator(".story-panel")).to_have_count(1)
    assert panel(page, 0)[:10] == SENTENCE[:10]
    page.locator("#copy-text").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert len(copied) == len(SENTENCE)
    assert copied == panel(page, 0)
    select(page, 20, 22)
    page.click("#show")
    assert marked(page) == ["of", "s"]
    expect(page.locator("#status")).to_have_text("Changed since this was filled in.")
    page.click("#show-all")
    assert marked(page) == []
    page.click("#hide-some")
    assert 0 < sum(map(len, marked(page))) < 25


def test_what_is_hidden_moves_with_the_text(texts: Watched) -> None:
    page = texts.open(still=True)
    write(page, SENTENCE)
    hide(page, 4, 9)
    select(page, 0, 0)
    page.keyboard.type("Now: ")
    assert marked(page) == ["value"]
    select(page, 7, 7)  # behind it
    page.keyboard.press("End")
    page.keyboard.type(" Why?")
    assert marked(page) == ["value"]
    select(page, 11, 11)  # inside it
    page.keyboard.type("X")
    assert marked(page) == ["va", "lue"]
    expect(page.locator("#count")).to_have_text(f"{len(SENTENCE) + 11} characters of at most 2048, 5 hidden.")


def test_letters_that_nobody_knows_and_texts_that_are_too_long(texts: Watched) -> None:
    page = texts.open(still=True)
    write(page, "na\u00efve\tcode \U0001f600")
    assert page.input_value("#editor textarea") == "na?ve    code ?"
    expect(page.locator("#note")).to_have_text(
        "2 letters that the experts do not know became a question mark."
    )
    write(page, "word " * 500)
    expect(page.locator("#note")).to_have_text("The last 452 characters had no room.")
    expect(page.locator("#count")).to_contain_text("2048 characters of at most 2048")


def test_a_longer_text_is_filled_window_by_window(texts: Watched) -> None:
    page = texts.open(still=True)
    text = page.input_value("#editor textarea")
    write(page, text * 3)
    page.click("#show-all")
    hide(page, 5, 8)
    hide(page, 700, 704)
    page.select_option('[data-name="method"]', "mixture")
    page.uncheck("#alone")
    fill_in(page)
    expect(page.locator("#status")).to_contain_text("of 7 hidden characters")
    assert panel(page, 0).count("\n") == (text * 3).rstrip("\n").count("\n")


def test_a_link_and_a_reload_restore_it(texts: Watched) -> None:
    page = texts.open(still=True)
    write(page, SENTENCE)
    hide(page, 4, 9)
    page.select_option('[data-name="method"]', "product")
    page.click("#copy-link")
    expect(page.locator("#copy-link")).to_have_text("Copied")
    link = page.evaluate("location.href")
    page.reload()
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    page.evaluate("localStorage.clear()")
    other = texts.open(link, still=True)
    for one in (page, other):
        assert (one.input_value("#editor textarea"), marked(one)) == (SENTENCE, ["value"])
        expect(one.locator('[data-name="method"]')).to_have_value("product")
    broken = texts.open(link[:-9], still=True)
    expect(broken.locator("#alert")).to_contain_text("This link is damaged")


def test_the_story_leads_here(texts: Watched) -> None:
    address = texts.address.replace("texts.html", "")
    page = texts.open(f"{address}#story=prose-and-code", still=True)
    page.click("#try")
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    assert page.input_value("#editor textarea").startswith("def mean(values):")


def test_keyboard_only(texts: Watched) -> None:
    page = texts.open(still=True)
    tab_to(page, "#editor textarea")
    page.keyboard.press("Control+a")
    page.keyboard.type(SENTENCE)
    for _ in range(5):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+Tab")
    tab_to(page, "#hide")
    page.keyboard.press("Enter")
    assert marked(page) == ["list."]
    page.keyboard.press("Control+Enter")
    filled(page)
    tab_to(page, ".story-panel .ch")
    expect(page.locator("#inspector")).to_contain_text("Line 1, character 36")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#inspector")).to_contain_text("Line 1, character 37")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_barrier_and_nothing_outside_the_screen(
    texts: Watched, size: str, dark: bool, pictures: Path
) -> None:
    page = texts.open(still=True, dark=dark, size=SIZES[size])
    assert barriers(page) == []
    fill_in(page)
    page.locator(".story-panel").nth(0).locator(".ch").nth(7).hover()
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
    assert barriers(page) == []
    if (size, dark) == ("desk", False):
        page.locator("#stage").scroll_into_view_if_needed()
        keep(page.screenshot(), pictures / "texts.png")
