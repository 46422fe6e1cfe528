"""What a person does on the page, by name."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def solve(page: Page) -> None:
    page.click("#solve")
    solved(page)


def solved(page: Page) -> None:
    """Wait until every lane has its answer."""
    expect(page.locator("#stop")).to_be_hidden(timeout=90_000)
    expect(page.locator("#save-png")).to_be_enabled()


def pick(page: Page, task: str) -> None:
    page.click("#choose")
    page.fill("#find", task)
    page.click(f'#gallery-list button[aria-label="Task {task}"]')
    expect(page.locator("#task-name")).to_have_text(task)


def unfold(page: Page, lane: int = 0) -> None:
    """Open the settings of a lane, which are folded away."""
    page.locator("fieldset").nth(lane).locator("summary").click()


def choose(page: Page, name: str, value: str, lane: int = 0) -> None:
    """Take one of the choices of a lane."""
    page.locator("fieldset").nth(lane).locator(f'[data-name="{name}"]').select_option(value)


def scrub(page: Page, step: int) -> None:
    page.locator("#scrub").fill(str(step))


def answer(page: Page, lane: int = 0) -> Locator:
    return page.locator(".lane").nth(lane).locator(".grid").nth(0).locator(".cell")


def routing(page: Page, lane: int = 0) -> Locator:
    return page.locator(".lane").nth(lane).locator(".grid").nth(1).locator(".cell")


def hidden(page: Page, lane: int = 0) -> int:
    return page.locator(".lane").nth(lane).locator(".grid").nth(0).locator(".cell.hidden-cell").count()


def colors(cells: Locator) -> list[int]:
    """The color of each cell; 10 where it is hidden."""
    names = cells.evaluate_all("cells => cells.map((cell) => cell.className)")
    found = [[part[1:] for part in name.split() if part[0] == "v" and part[1:].isdigit()] for name in names]
    return [int(one[0]) if one else 10 for one in found]
