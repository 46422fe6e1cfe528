"""What was changed can be taken back, a drawn task outlives a reload, and says how far it is from what is known."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser.acts import answer, colors, pick, solve, solved
from tests.web.browser.conftest import Watched
from tests.web.browser.test_reach import tab_to

TASK = "23581191"


def first_grid(page: Page):
    return page.locator(".pair").first.locator(".grid").first.locator(".cell")


def test_undo_and_redo(page: Page) -> None:
    pick(page, TASK)
    page.click('.swatch[aria-label^="6"]')
    before = colors(first_grid(page))
    # One stroke over three cells is one change.
    boxes = [first_grid(page).nth(place).bounding_box() for place in (0, 1, 2)]
    centers = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes if box]
    page.mouse.move(*centers[0])
    page.mouse.down()
    for center in centers[1:]:
        page.mouse.move(*center)
    page.mouse.up()
    painted = colors(first_grid(page))
    assert painted[:3] == [6, 6, 6]
    first_grid(page).nth(5).click()
    page.keyboard.press("Control+z")
    assert colors(first_grid(page)) == painted
    page.click("#undo")
    assert colors(first_grid(page)) == before
    expect(page.locator("#task-name")).to_have_text(TASK)  # not edited any more
    page.keyboard.press("Control+Shift+z")
    assert colors(first_grid(page)) == painted
    page.click("#redo")
    assert colors(first_grid(page))[5] == 6
    expect(page.locator("#redo")).to_be_disabled()


def test_fixing_a_cell_shows_its_color_at_once_and_can_be_taken_back(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    before = colors(answer(page))
    page.click('.swatch[aria-label^="9"]')
    answer(page).nth(44).click()
    assert colors(answer(page))[44] == 9
    page.keyboard.press("Control+z")
    assert colors(answer(page)) == before
    expect(page.locator("#status")).to_have_text("routing: right")
    expect(page.locator("#fixed-note")).to_have_text("")


def test_any_wrong_answer_can_be_corrected(page: Page) -> None:
    pick(page, TASK)
    asked = page.locator(".pair.asked .grid").first.locator(".cell")
    page.click('.swatch[aria-label^="6"]')
    asked.nth(0).click()  # the experts do not know this query
    solve(page)
    expect(page.locator("#guide")).to_contain_text("Correct one of them")
    page.click("#correct")
    solved(page)
    expect(page.locator("#guide")).to_contain_text("1 cell corrected, and nothing else changed")
    expect(page.locator("#fixed-note")).to_have_text("1 cell fixed")
    page.click("#take-back")
    expect(page.locator("#fixed-note")).to_have_text("")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desk", "phone"])
def test_its_mind_is_changed_with_the_keyboard_alone(
    pages: Watched, size: tuple[int, int], dark: bool
) -> None:
    """Draw, solve, correct, take back, compare: on any screen, without a mouse, and nothing lies outside of it."""
    page = pages.open(size=size, dark=dark, still=True)
    tab_to(page, ".pair.asked .cell", most=120)
    first = colors(page.locator(".pair.asked .grid").first.locator(".cell"))[0]
    page.keyboard.press(str((first + 1) % 10))  # a query that the experts do not know
    page.keyboard.press("Control+Enter")
    solved(page)
    expect(page.locator("#status")).to_have_text("routing: not right")
    expect(answer(page).first).to_be_in_viewport()
    before = colors(answer(page))
    tab_to(page, "#correct")
    page.keyboard.press("Enter")
    solved(page)
    expect(page.locator("#fixed-note")).to_have_text("1 cell fixed")
    assert sum(one != other for one, other in zip(before, colors(answer(page)), strict=True)) == 1
    page.keyboard.press("Control+z")
    expect(page.locator("#fixed-note")).to_have_text("")
    assert colors(answer(page)) == before
    page.keyboard.press("Control+Shift+z")
    expect(page.locator("#fixed-note")).to_have_text("1 cell fixed")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    tab_to(page, "#compare", most=120)
    page.keyboard.press("Space")
    expect(page.locator(".lane")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


def test_a_drawn_task_survives_a_reload(page: Page) -> None:
    page.click("#new-task")
    page.click('.swatch[aria-label^="3"]')
    first_grid(page).nth(4).click()
    drawn = colors(page.locator(".pair .cell"))
    page.reload()
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    expect(page.locator("#task-name")).to_have_text("your own task")
    assert colors(page.locator(".pair .cell")) == drawn
    pick(page, TASK)  # another task is opened: nothing is kept
    page.reload()
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    expect(page.locator("#task-name")).not_to_have_text("your own task")


def test_a_drawn_task_says_how_far_it_is_from_what_is_known(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    expect(page.locator("#familiarity")).to_be_hidden()  # it is one of those they know
    page.click("#new-task")
    page.click('.swatch[aria-label^="3"]')
    for cell in range(9):
        page.locator(".pair").first.locator(".grid").nth(1).locator(".cell").nth(cell).click()
    solve(page)
    told = page.locator("#familiarity")
    expect(told.locator("li")).to_have_count(2)
    numbers = [
        [float(number) for number in re.findall(r"(?:: |tasks |than )(\d+(?:\.\d+)?)", one)]
        for one in told.locator("li").all_text_contents()
    ]
    assert all(len(one) == 3 and one[1] <= one[2] for one in numbers), (
        numbers
    )  # this task, half of the known, nine in ten
    near = any(here <= most for here, _, most in numbers)
    expect(told).to_contain_text("look like something" if near else "No task that the experts know explains")
    expect(told).to_have_class(f"familiarity {'near' if near else 'far'}")
    page.locator('[aria-label="Remove pair 2"]').click()
    solve(page)
    expect(told).to_contain_text("add another")


def test_a_comparison_begins_with_the_same_experts(page: Page) -> None:
    page.locator('[data-name="expert-right"]').first.uncheck()
    expect(page.locator('fieldset >> nth=0 >> [data-name="method"]')).to_have_value("single")
    page.locator('[data-name="expert-right"]').first.check()
    page.check("#compare")
    for name in ("left", "right"):
        expect(page.locator("fieldset").nth(1).locator(f'[data-name="expert-{name}"]')).to_be_checked()
    methods = [
        page.locator("fieldset").nth(lane).locator('[data-name="method"]').input_value() for lane in (0, 1)
    ]
    assert methods == ["routing", "mixture"]
