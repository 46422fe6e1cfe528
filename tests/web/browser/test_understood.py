"""What somebody new sees is what is so: marks, words and numbers explain themselves, and nothing stale is left."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.browser.acts import colors, hidden, pick, solve, solved
from tests.web.browser.conftest import Watched
from tests.web.serving import LIBRARY, until

TASK = "2204b7a8"
SHOWN_SECOND = """async (reason) => {
    const { SecondPanel } = await import("/js/second.js");
    const panel = new SecondPanel();
    panel.show({ grid: [[1, 2]], reason, right: null }, [[1, 1]]);
    return panel.root.textContent;
}"""
BROKEN_STREAM = """async () => {
    const { solve } = await import("/js/api.js");
    const broken = new ReadableStream({ start: (stream) => stream.error(new TypeError("network error")) });
    globalThis.fetch = async () => new Response(broken);
    return solve({}, () => {}).catch((error) => error.message);
}"""


def voice(page: Page, place: int) -> list[str]:
    """What an expert's map says of each cell."""
    cells = page.locator(".lane .grid").nth(2 + place).locator(".cell")
    return cells.evaluate_all("cells => cells.map((cell) => cell.getAttribute('aria-label'))")


FOLDED = """() => {
    document.querySelector("fieldset summary").click();
    const method = document.querySelector('fieldset [data-name="method"]');
    method.value = "mixture";
    method.dispatchEvent(new Event("change"));  // at once: nobody has heard yet that it is unfolded
    return document.querySelector("fieldset .fold").open;
}"""


def test_a_server_that_went_away_is_said_in_a_sentence(page: Page) -> None:
    assert "Is `factordiff play` still running?" in page.evaluate(BROKEN_STREAM)


def test_rows_are_counted_from_one_in_every_sentence(page: Page) -> None:
    reason = "with its second choice at row 0, column 9, where it was least sure"
    assert "at row 1, column 10, where" in page.evaluate(SHOWN_SECOND, reason)


def test_an_expert_s_map_says_what_it_said_of_decided_cells_too(page: Page) -> None:
    pick(page, TASK)
    nothing = page.locator(".lane .grid").nth(2).locator(".cell").first
    expect(nothing).to_have_css("background-image", re.compile("gradient"))  # hidden, as everywhere
    solve(page)
    assert hidden(page) == 0
    for place in (0, 1):
        said = voice(page, place)
        assert all("margin" in one for one in said), said
    assert voice(page, 0) != voice(page, 1)  # each knows a half


def test_the_margin_is_explained_where_it_stands(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    page.locator(".lane .grid").nth(1).locator(".cell").nth(33).hover()
    expect(page.locator("#inspector .note")).to_contain_text(
        "how far the likeliest color is ahead of the next"
    )
    expect(page.locator(".lane")).not_to_contain_text("Faint")  # all is decided
    page.locator("#scrub").fill("10")
    expect(page.locator(".lane")).to_contain_text("Faint: not decided yet.")


def test_another_task_leaves_nothing_of_a_run_that_was_under_way(page: Page) -> None:
    pick(page, TASK)
    page.click("#solve")
    expect(page.locator("#step-label")).to_contain_text("of")
    page.click("#new-task")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator("#status")).to_have_text("")
    page.wait_for_timeout(300)  # what was stopped ends in its own time
    expect(page.locator("#status")).to_have_text("")
    expect(page.locator("#save-png")).to_be_disabled()


def test_a_chosen_task_survives_a_reload_and_a_way_back(page: Page) -> None:
    pick(page, TASK)
    page.fill("#instance", "3")
    page.press("#instance", "Enter")
    third = LIBRARY.task(TASK, "rearc", 2)["test"][0]["input"]
    asked = page.locator(".pair.asked .grid").first.locator(".cell")
    until(lambda: colors(asked) == [color for row in third for color in row])
    page.reload()
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    expect(page.locator("#task-name")).to_have_text(TASK)
    expect(page.locator("#instance")).to_have_value("3")
    assert colors(asked) == [color for row in third for color in row]
    page.click("a.brand")
    page.go_back()
    expect(page.locator("#task-name")).to_have_text(TASK)


def test_on_a_phone_the_head_takes_one_row_and_one_for_the_verdict(pages: Watched) -> None:
    page = pages.open(size=(390, 844))

    def height() -> float:
        box = page.locator(".top.bench").bounding_box()
        assert box is not None
        return box["height"]

    assert height() < 76
    page.click("#solve")
    expect(page.locator("#stop")).to_be_visible()
    assert height() < 100  # Stop beside Solve, the status below
    solved(page)
    assert height() < 100


def test_settings_stay_unfolded_however_fast_the_next_choice_is(page: Page) -> None:
    assert page.evaluate(FOLDED)
