"""Keyboard only, on a phone, in the dark, with another palette; and the pictures for the docs."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import BrowserContext, Page, expect

from factordiff.web.registry import ExpertRegistry
from tests.web.browser.acts import answer, colors, hidden, pick, routing, scrub, solve, solved, unfold
from tests.web.browser.conftest import Watched
from tests.web.serving import serve


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the element has the focus: it can be reached without a mouse."""
    for _ in range(most):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} was not reached with {most} presses of Tab")


def whole(page: Page) -> bytes:
    """The page from its top to its end."""
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    return page.screenshot(full_page=True)


def keep(picture: bytes, path: Path) -> None:
    """Save a picture in 256 colors: a third of the bytes."""
    few = Image.open(BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def test_solve_is_among_the_first_stops_and_leaves_the_keys_to_the_trajectory(page: Page) -> None:
    page.keyboard.press("Tab")
    tab_to(page, "#solve", most=3)
    page.keyboard.press("Enter")
    solved(page)
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")


def test_keyboard_only(page: Page) -> None:
    tab_to(page, "#choose")
    page.keyboard.press("Enter")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("23581191")
    expect(page.locator("#gallery-list button")).to_have_count(1)
    tab_to(page, "#gallery-list button")
    page.keyboard.press("Enter")
    expect(page.locator("#task-name")).to_have_text("23581191")
    # Paint: one stop for each grid, arrows inside, digits paint.
    tab_to(page, ".pair .cell")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("8")
    grid = page.locator(".pair").first.locator(".grid").first
    columns = int(page.locator(".pair").first.get_by_label("Example 1, input: columns").input_value())
    assert colors(grid.locator(".cell"))[columns + 1] == 8
    page.keyboard.press("Control+Enter")
    solved(page)
    # The trajectory: the keys are its own as soon as something is solved.
    page.keyboard.press("Home")
    assert hidden(page) == 100
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#step-label")).to_have_text("step 3 of 100")
    page.keyboard.press("End")
    assert hidden(page) == 0
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    page.keyboard.press("Space")
    # Fix a cell and look at it.
    tab_to(page, ".lane .grid.editable .cell")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("5")
    expect(page.locator("#fixed-note")).to_have_text("1 cell fixed")
    expect(page.locator("#inspector")).to_contain_text("Row 1, column 2")
    page.keyboard.press("Delete")
    expect(page.locator("#fixed-note")).to_have_text("")
    page.keyboard.press("Control+Enter")
    solved(page)
    page.locator("#stage").focus()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_everything_has_a_name(page: Page) -> None:
    solve(page)
    controls = page.locator("button, input, select, textarea, [role=grid], [role=gridcell]")
    named = "one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim() || one.title"
    nameless = controls.evaluate_all(f"all => all.filter((one) => !({named})).map((one) => one.outerHTML)")
    assert nameless == []


def test_at_phone_width(page: Page, pictures: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    try:
        pick(page, "0ca9ddb6")
        narrow = page.locator(".sized .cell").evaluate_all(
            "all => Math.min(...all.map((one) => one.getBoundingClientRect().width))"
        )
        assert narrow >= 24
        solve(page)
        expect(page.locator("#status")).to_have_text("routing: right")
        expect(answer(page).first).to_be_in_viewport()  # without scrolling to it
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        outside = page.locator("button:not(.pairs *), select, .lane .grid").evaluate_all(
            "all => all.filter((one) => one.getBoundingClientRect().right > 390).map((one) => one.outerHTML)"
        )
        assert outside == []
        scrub(page, 45)
        routing(page).nth(43).click()
        expect(page.locator("#inspector")).to_contain_text("Row 5, column 4")
        page.locator("#stage").scroll_into_view_if_needed()
        page.evaluate("document.querySelector('#stage').scrollIntoView()")
        keep(page.screenshot(), pictures / "playground-phone.png")
    finally:
        page.set_viewport_size({"width": 1360, "height": 900})


def test_the_shipped_specialists_solve_a_task_in_the_browser(browser: BrowserContext, pictures: Path) -> None:
    """The paper's pair at the paper's temperature: each cell finds the one who knows it."""
    with serve(ExpertRegistry.load(["trans-color", "trans-occ"])) as running:
        watched = Watched(browser, running)
        page = watched.open()
        pick(page, "0ca9ddb6")
        unfold(page)
        expect(page.get_by_label("Temperatures of trans-occ")).to_have_value("0.125")  # as it was fitted
        solve(page)
        expect(page.locator("#status")).to_have_text("routing: right")
        scrub(page, 60)
        routing(page).nth(43).hover()
        keep(whole(page), pictures / "playground-light.png")
        page.close()
        assert watched.complaints == []
    assert (pictures / "playground-light.png").stat().st_size > 20_000


def test_dark_mode_follows_the_system_and_the_choice(page: Page, pictures: Path) -> None:
    def brightness() -> int:
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in color[4:-1].split(","))

    page.emulate_media(color_scheme="light")
    assert brightness() > 600
    page.emulate_media(color_scheme="dark")
    assert brightness() < 150
    page.select_option("#theme", "light")
    assert brightness() > 600
    page.emulate_media(color_scheme="light")
    page.select_option("#theme", "dark")
    assert brightness() < 150
    pick(page, "0ca9ddb6")
    page.check("#compare")
    expect(page.locator('fieldset >> nth=1 >> [data-name="method"]')).to_have_value("mixture")
    page.check("#second")
    solve(page)
    expect(page.locator(".second")).to_have_count(2)
    keep(whole(page), pictures / "playground-dark.png")
    page.select_option("#theme", "auto")


def test_the_safe_palette_is_another_and_shows_digits(page: Page) -> None:
    cell = page.locator(".pair .cell").first
    before = cell.evaluate("cell => getComputedStyle(document.documentElement).getPropertyValue('--c2')")
    assert cell.locator("span").evaluate("span => getComputedStyle(span).opacity") == "0"
    page.select_option("#palette", "safe")
    after = cell.evaluate("cell => getComputedStyle(document.documentElement).getPropertyValue('--c2')")
    assert before != after
    assert float(cell.locator("span").evaluate("span => getComputedStyle(span).opacity")) > 0.5
    page.select_option("#palette", "arc")


def test_a_server_that_is_gone_is_said_to_be(pages: Watched) -> None:
    page = pages.open()
    page.route("**/api/v1/solve", lambda route: route.abort())
    page.click("#solve")
    expect(page.locator("#alert")).to_contain_text("The server cannot be reached")
    pages.complaints.clear()  # the browser notes the failed request itself
    page.unroute("**/api/v1/solve")
    solve(page)
    expect(page.locator("#alert")).to_be_hidden()
    assert 10 not in colors(answer(page))
