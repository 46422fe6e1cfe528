"""The stories of worlds, from a file and from a server: a mosaic of four tasks, prose and code in a text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from factordiff.web.record import Recording
from factordiff.web.world_story_list import MOSAIC, TEXT
from tests.web.browser.barriers import barriers
from tests.web.browser.conftest import Watched
from tests.web.browser.test_first import SIZES, chips, ended, letters
from tests.web.browser.test_reach import keep, tab_to
from tests.web.captions import counted, decided_by, wrong_cells
from tests.web.serving import Served

STORIES = {story.name: story for story in (MOSAIC, TEXT)}
MOST = 75  # hundredths of the weight with which a character is somebody's


@pytest.fixture
def told(recordings: list[Recording]) -> dict[str, Recording]:
    return {one.story.name: one for one in recordings}


def characters(page: Page, panel: int) -> Locator:
    """The characters that were hidden."""
    return page.locator(".story-panel").nth(panel).locator(".text .ch")


def ends_as_recorded(page: Page, one: Recording) -> None:
    """The caption and the chips say what the recording has."""
    ended(page, one.outcome)
    expect(page.locator("#caption")).to_have_text(counted(one, one.outcome))
    unit = "cell" if one.story.kind == "mosaic" else "character"
    for run, chip in enumerate(chips(page)):
        wrong = len(wrong_cells(one, run))
        assert chip == (f"✗ {wrong} {unit}{'s' * (wrong != 1)} wrong" if wrong else "✓ right")


@pytest.mark.parametrize("name", STORIES)
def test_from_a_file_it_ends_as_recorded(
    pages: Watched, site: Path, told: dict[str, Recording], name: str
) -> None:
    page = pages.open(f"{site.as_uri()}#story={name}", still=True)
    ends_as_recorded(page, told[name])
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")  # nothing moves
    expect(page.locator("#try")).to_be_hidden()


@pytest.mark.parametrize("name", STORIES)
def test_a_server_tells_the_same(
    browser: BrowserContext, live: Served, told: dict[str, Recording], name: str
) -> None:
    watched = Watched(browser, live)
    page = watched.open(f"http://127.0.0.1:{live.port}/#story={name}", still=True)
    ends_as_recorded(page, told[name])
    tried = expect(page.locator("#try"))  # the workbench has single tasks only
    tried.to_be_visible() if name == TEXT.name else tried.to_be_hidden()
    expect(page.locator("#to-workbench")).to_be_visible()
    page.close()
    assert watched.complaints == []


def test_the_map_of_the_mosaic_has_four_owners(
    pages: Watched, site: Path, told: dict[str, Recording]
) -> None:
    page = pages.open(f"{site.as_uri()}#story=mosaic", still=True)
    assert letters(page, 1) == {"A", "B", "C", "D"}
    cells = page.locator(".story-panel").nth(1).locator(".letters .cell")
    shown = ["ABCD".index(letter) for letter in cells.all_text_contents()]
    assert dict(enumerate(shown)) == decided_by(told["mosaic"], 1)
    corners = [cells.nth(cell) for cell in (0, 19, 380, 399)]
    assert len({one.evaluate("cell => getComputedStyle(cell).backgroundColor") for one in corners}) == 4
    expect(page.locator(".story-panel").nth(1).locator(".legend")).to_contain_text("D: 100 cells")
    page.locator("#scrub").fill("3")
    expect(page.locator("#caption")).to_have_text(MOSAIC.intro)  # nothing is said before it happened
    assert page.locator(".story-panel").nth(0).locator(".hidden-cell").count() > 0


def test_every_character_says_who_decided_it(pages: Watched, site: Path, told: dict[str, Recording]) -> None:
    page = pages.open(f"{site.as_uri()}#story={TEXT.name}", still=True)
    expected = {}
    for step in told[TEXT.name].runs[2][1:-1]:
        for cell in step["revealed"]:
            weights = [of_expert[step["cells"].index(cell)] for of_expert in step["weights"]]
            expected[cell] = f"by-{weights.index(max(weights))}" if max(weights) >= MOST else "by-shared"
    found = characters(page, 2).evaluate_all(
        "all => all.map((one) => [Number(one.dataset.cell), one.classList[1]])"
    )
    assert dict(found) == expected
    assert set(expected.values()) == {"by-0", "by-1", "by-shared"}
    legend = page.locator(".story-panel").nth(2).locator(".legend")
    for kind, name in (("by-0", "A"), ("by-1", "B"), ("by-shared", "shared")):
        expect(legend).to_contain_text(f"{name}: {list(expected.values()).count(kind)} character")
    lines = {
        characters(page, 2)
        .locator(f"xpath=self::*[contains(@class, '{kind}')]")
        .first.evaluate("one => getComputedStyle(one).textDecorationStyle")
        for kind in set(expected.values())
    }
    assert lines == {"solid", "dotted", "double"}  # not by color alone


def test_the_text_is_scrubbed(pages: Watched, site: Path, told: dict[str, Recording]) -> None:
    one = told[TEXT.name]
    page = pages.open(f"{site.as_uri()}#story={TEXT.name}", still=True)
    page.keyboard.press("Home")
    expect(page.locator("#caption")).to_have_text(TEXT.intro)
    assert characters(page, 0).count() == one.runs[0][0]["masked"]
    assert set(characters(page, 0).all_text_contents()) == {" "}
    for step in range(1, 4):
        page.keyboard.press("ArrowRight")
        filled = sum(len(event["revealed"]) for event in one.runs[0][1 : step + 1])
        expect(page.locator(".story-panel").nth(0).locator(".text .hidden-cell")).to_have_count(
            one.runs[0][0]["masked"] - filled
        )
    page.locator("#scrub").fill(str(max(len(run) - 2 for run in one.runs[:2])))
    expect(page.locator("#caption")).to_have_text(counted(one, "00"))
    miss = page.locator(".story-panel").nth(1).locator(".miss").first
    expect(miss).to_have_attribute("aria-label", "Line 2, character 20: “o”, right is “a”")
    miss.hover()
    expect(page.locator("#inspector")).to_contain_text("Line 2, character 20")


def test_it_plays_itself(pages: Watched, site: Path) -> None:
    page = pages.open(f"{site.as_uri()}#story={TEXT.name}")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    page.select_option("#speed", "25")
    ended(page, "00")
    ended(page, "001")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")


def test_keyboard_only(pages: Watched, site: Path) -> None:
    page = pages.open(site.as_uri(), still=True)
    tab_to(page, f'.story-card[data-name="{TEXT.name}"]')
    page.keyboard.press("Enter")
    ended(page, "001")
    tab_to(page, ".story-panel .ch")
    expect(page.locator("#inspector")).to_contain_text("Line 1, character 6")
    expect(page.locator("#inspector .voice")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#inspector")).to_contain_text("Line 2, character 3")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#inspector")).to_contain_text("Line 2, character 20")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#inspector")).to_contain_text("Line 1, character 13")
    for _ in range(9):
        page.keyboard.press("ArrowLeft")  # the first one is the last that way
    expect(page.locator(".ch:focus")).to_have_attribute("aria-label", "Line 1, character 6: “e”")
    tab_to(page, f'.story-card[data-name="{MOSAIC.name}"]')
    page.keyboard.press("Enter")
    ended(page, "01")
    tab_to(page, ".story-panel .cell")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#inspector")).to_contain_text("Row 2, column 13")
    expect(page.locator("#inspector .voice")).to_have_count(4)


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_barrier_and_nothing_outside_the_screen(
    pages: Watched, site: Path, size: str, dark: bool, name: str, pictures: Path
) -> None:
    page = pages.open(f"{site.as_uri()}#story={name}", still=True, dark=dark, size=SIZES[size])
    looked = page.locator(".story-panel").last.locator(".letters .cell, .text .ch").nth(21)
    looked.hover()
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
    assert barriers(page) == []
    if (size, dark) in (("desk", False), ("phone", True)):
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        keep(page.screenshot(), pictures / f"story-{name}{'' if size == 'desk' else '-phone'}.png")
    page.locator("#scrub").fill("5")
    assert barriers(page) == []
    for text in page.locator(".story-panel .text").all():
        assert text.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_narrow_text_is_wrapped(pages: Watched, site: Path) -> None:
    page = pages.open(f"{site.as_uri()}#story={TEXT.name}", still=True, size=(300, 700))
    row = page.locator(".story-panel .text-row").nth(1)
    box = row.bounding_box()
    assert box is not None
    assert box["height"] > 30  # two lines
    assert page.evaluate("document.documentElement.scrollWidth") == 300
