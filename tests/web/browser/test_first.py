"""The first screen: it plays itself, says only what came out, and leads to the workbench."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from factordiff.web.record import Recording
from factordiff.web.story_list import STORIES
from tests.web.browser.acts import answer, choose, colors, solved, unfold
from tests.web.browser.barriers import barriers
from tests.web.browser.conftest import Watched
from tests.web.browser.test_reach import keep, tab_to
from tests.web.serving import Served

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
FIRST = STORIES[0]


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """The plainest of static hosts."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def static(site: Path) -> Iterator[str]:
    with hosted(site.parent) as address:
        yield address


def chips(page: Page) -> list[str]:
    return page.locator(".chip").all_text_contents()


def letters(page: Page, panel: int) -> set[str]:
    """Who decides inside the grid."""
    return set(page.locator(".story-panel").nth(panel).locator(".letters .cell").all_text_contents())


def ended(page: Page, outcome: str) -> None:
    expect(page.locator("#caption")).to_have_attribute("data-outcome", outcome, timeout=60_000)


def test_it_plays_itself_once_with_the_real_experts(
    browser: BrowserContext, live: Served, pictures: Path
) -> None:
    watched = Watched(browser, live)
    page = watched.open(f"http://127.0.0.1:{live.port}/")
    expect(page.locator("#story-title")).to_have_text("A knows colors. B knows places.")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")  # nobody pressed it
    assert page.locator(".story-panel .hidden-cell").count() > 0
    ended(page, "00")
    assert all("wrong" in chip for chip in chips(page)[:2])
    expect(page.locator("#caption")).to_contain_text("Alone, each fails.")
    ended(page, "001")
    expect(page.locator("#caption")).to_have_text(FIRST.captions["001"])
    assert chips(page)[2] == "✓ right"
    assert letters(page, 2) == {"A", "B"}
    expect(page.locator(".story-panel .legend")).to_contain_text("Who decides each cell")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")  # once, and no more
    expect(page.locator("[data-known]").first).to_have_text("120")
    page.locator(".story-panel").nth(2).locator(".letters .cell").nth(33).hover()
    expect(page.locator("#inspector .voice")).to_have_count(2)
    keep(page.screenshot(), pictures / "first-screen.png")
    page.click("#to-workbench")
    expect(page.locator("#task-name")).not_to_be_empty()
    expect(page.locator('[data-name="team"]').first).to_have_value("team:col+occ")
    page.close()
    assert watched.complaints == []


def test_a_wrong_answer_changes_its_mind(browser: BrowserContext, live: Served) -> None:
    """The guided example: one corrected cell, the rest recomputed, taken back and done again."""
    watched = Watched(browser, live)
    page = watched.open(f"http://127.0.0.1:{live.port}/workbench.html#story=change-its-mind")
    solved(page)
    expect(page.locator("#status")).to_have_text("routing: not right")
    before = colors(answer(page))
    expect(page.locator("#guide")).to_contain_text("not right. Correct one of them")
    page.click("#correct")
    expect(page.locator(".pin")).to_have_count(1)  # at once
    solved(page)
    expect(page.locator("#status")).to_have_text("routing: right")
    after = colors(answer(page))
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert changed > 5
    expect(page.locator("#guide")).to_contain_text(
        f"1 cell corrected, and {changed - 1} cells changed by themselves"
    )
    page.click("#take-back")
    expect(page.locator("#status")).to_have_text("routing: not right")  # what was solved is still known
    assert colors(answer(page)) == before
    page.click("#redo")
    expect(page.locator("#status")).to_have_text("routing: right")
    assert colors(answer(page)) == after
    page.close()
    assert watched.complaints == []


@pytest.mark.parametrize("place", ["file", "host"])
def test_the_site_opens_from_a_file_and_from_a_host(
    pages: Watched, site: Path, static: str, place: str
) -> None:
    page = pages.open(site.as_uri() if place == "file" else static)
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    page.select_option("#speed", "25")
    ended(page, "001")
    assert letters(page, 2) == {"A", "B"}
    expect(page.locator(".story-card")).to_have_count(6)
    expect(page.locator("#to-workbench")).to_be_hidden()  # there is no server
    expect(page.locator(".know")).to_contain_text("factordiff play")
    page.locator(".story-card", has_text="Change its mind").click()
    expect(page.locator("#story-title")).to_have_text("Change its mind")
    page.click("#last")
    ended(page, "01")
    expect(page.locator(".story-panel").nth(1).locator(".pin")).to_have_count(1)
    page.locator("#scrub").fill("5")
    expect(page.locator("#caption")).to_have_attribute(
        "data-outcome", ""
    )  # nothing is said before it happened
    assert page.locator(".story-panel").nth(0).locator(".hidden-cell").count() > 0
    page.go_back()
    expect(page.locator("#story-title")).to_have_text(FIRST.title)


def test_runs_of_a_comparison_share_a_clock(pages: Watched, site: Path) -> None:
    page = pages.open(f"{site.as_uri()}#story=fast-or-exact", still=True)
    page.locator("#scrub").fill("10")
    slow, fast = (page.locator(".story-panel").nth(number) for number in (0, 1))
    assert slow.locator(".hidden-cell").count() > 0
    assert fast.locator(".hidden-cell").count() == 0
    fast.locator(".cell").nth(3).hover()
    expect(page.locator("#inspector")).to_contain_text("Row 1, column 4")


def test_what_is_said_of_passes_is_counted(pages: Watched, site: Path, recordings: list[Recording]) -> None:
    told = next(one for one in recordings if one.story.name == "fast-or-exact")
    slow, fast = (events[-1]["passes"]["executed"] for events in told.runs)
    assert fast < slow
    page = pages.open(f"{site.as_uri()}#story=fast-or-exact", still=True)
    expect(page.locator("#caption")).to_contain_text(f"{fast} passes")
    expect(page.locator("#caption")).to_contain_text(f"instead of {slow}.")


@pytest.mark.parametrize("width", [1280, 900, 700, 390])
def test_two_answers_are_drawn_at_one_scale(pages: Watched, site: Path, width: int) -> None:
    """One run has a map of who decides beside its answer, the other has none."""
    page = pages.open(f"{site.as_uri()}#story=product-wins", still=True, size=(width, 800))
    panels = page.locator(".story-panel")
    assert [panels.nth(number).locator(".grid").count() for number in (0, 1)] == [2, 1]
    shown = [panels.nth(number).locator(".grid").first.bounding_box() for number in (0, 1)]
    first, second = (box["width"] for box in shown if box is not None)
    assert abs(first - second) < 0.1 * first
    if width == 1280:
        expect(page.locator("#play")).to_be_in_viewport()


def test_nothing_moves_for_those_who_asked_for_that(pages: Watched, site: Path) -> None:
    page = pages.open(site.as_uri(), still=True)
    ended(page, "001")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")
    assert page.locator(".hidden-cell").count() == 0


def test_keyboard_only(pages: Watched, site: Path) -> None:
    page = pages.open(site.as_uri(), still=True)
    page.keyboard.press("Home")
    expect(page.locator("#caption")).to_have_text(FIRST.intro)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#step-label")).to_contain_text("step 3 of")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    page.keyboard.press("Space")
    tab_to(page, ".story-panel .cell")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#inspector")).to_contain_text("Row 2, column 1")
    tab_to(page, ".story-card:last-child")
    page.keyboard.press("Enter")
    expect(page.locator("#stage")).to_have_attribute("data-story", "fast-or-exact")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_barrier_and_nothing_outside_the_screen(
    pages: Watched, site: Path, size: str, dark: bool, pictures: Path
) -> None:
    width = SIZES[size][0]
    page = pages.open(site.as_uri(), still=True, dark=dark, size=SIZES[size])
    page.locator(".story-panel").nth(2).locator(".letters .cell").nth(33).click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert barriers(page) == []
    page.locator("#scrub").fill("30")
    assert barriers(page) == []
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".story-panel .grid").first).to_be_in_viewport()
    page.click("#last")
    if size == "phone" and not dark:
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        keep(page.screenshot(), pictures / "first-phone.png")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_barrier_on_the_workbench(pages: Watched, size: str, dark: bool) -> None:
    page = pages.open(dark=dark, still=True, size=SIZES[size])
    assert barriers(page) == []
    unfold(page)
    choose(page, "rule", "fast")
    page.check("#second")
    page.click("#solve")
    solved(page)
    expect(page.locator(".second .grid")).to_be_visible()
    answer(page).nth(12).hover()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]


def test_a_story_that_cannot_be_told_is_not_waited_for(browser: BrowserContext, live: Served) -> None:
    page = Watched(browser, live).open(f"http://127.0.0.1:{live.port}/", still=True)
    page.route("**/api/v1/tell", lambda route: route.abort())
    page.route("**/api/v1/solve", lambda route: route.abort())
    page.locator(".story-card").nth(1).click()
    expect(page.locator("#alert")).to_contain_text("The server cannot be reached")
    expect(page.locator("#caption")).to_be_empty()
    page.close()


def test_experts_that_tell_no_story_open_on_the_workbench(pages: Watched, server: Served) -> None:
    page = pages.open(f"http://127.0.0.1:{server.port}/")
    expect(page).to_have_url(f"http://127.0.0.1:{server.port}/workbench.html")
    expect(page.locator("#task-name")).not_to_be_empty()
