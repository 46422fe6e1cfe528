"""Pick, solve, watch, look, edit, fix, compare."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from factordiff import compose
from factordiff.arc.task import parse_task
from factordiff.composition import method
from factordiff.composition.method import declare
from factordiff.composition.mixture import Mixture
from factordiff.composition.options import Option
from factordiff.solving import solver
from factordiff.web.registry import ExpertRegistry
from tests.web.browser.acts import answer, choose, colors, hidden, pick, routing, scrub, solve, solved, unfold
from tests.web.browser.conftest import Watched
from tests.web.serving import LIBRARY, Served, until

TASK = "23581191"


def canvas_of(rows: list[list[int]]) -> list[int]:
    padded = [row + [0] * (10 - len(row)) for row in rows] + [[0] * 10] * (10 - len(rows))
    return [color for row in padded for color in row]


def test_pick_solve_and_scrub(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    expect(page.locator("#status")).to_have_text("routing: right")
    expect(page.locator("#step-label")).to_have_text("step 100 of 100")
    right = canvas_of(LIBRARY.task(TASK, "rearc", 0)["test"][0]["output"])
    assert colors(answer(page)) == right
    for step in (0, 1, 37, 99):
        scrub(page, step)
        assert hidden(page) == 100 - step
    page.click("#back")
    expect(page.locator("#step-label")).to_have_text("step 98 of 100")
    page.click("#forward")
    expect(page.locator("#step-label")).to_have_text("step 99 of 100")
    shown = colors(answer(page))
    assert all(color in (10, true) for color, true in zip(shown, right, strict=True))
    page.click("#first")
    expect(page.locator("#step-label")).to_have_text("before step 1 of 100")
    page.click("#last")
    assert hidden(page) == 0


def test_play_and_pause(page: Page) -> None:
    solve(page)
    page.click("#first")
    page.select_option("#speed", "25")
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    expect(page.locator("#step-label")).to_contain_text("step 1")
    page.click("#play")
    paused = page.locator("#step-label").text_content()
    page.wait_for_timeout(300)
    assert page.locator("#step-label").text_content() == paused


def test_the_routing_map_says_who_decides(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    letters = routing(page).all_text_contents()
    assert letters == (["A"] * 5 + ["B"] * 5) * 10
    expect(page.locator(".legend").first).to_contain_text("A left: 50")


def test_the_routing_map_says_how_much_who_decides_counts(page: Page) -> None:
    pick(page, TASK)
    unfold(page)
    choose(page, "method", "evidence")
    solve(page)
    scrub(page, 1)  # nothing is known before the first cell: it is shared evenly
    shared = page.locator(".lane .letters .cell.shared")
    expect(shared).to_have_count(1)
    expect(shared).to_have_attribute("aria-label", re.compile(r": (left|right), counts 50 %$"))
    expect(page.locator(".lane .panel", has_text="Who decides")).to_contain_text("Ringed: shared.")


def test_a_cell_shows_every_experts_distribution(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    scrub(page, 10)
    routing(page).nth(7).hover()
    inspector = page.locator("#inspector")
    expect(inspector).to_contain_text("Row 1, column 8")
    expect(inspector.locator(".voice")).to_have_count(2)
    expect(inspector.locator(".voice").nth(1)).to_contain_text("decides")
    assert inspector.locator(".bar").count() == 20
    expect(inspector.locator(".voice").nth(1)).to_contain_text("margin 0.9")


def test_edit_a_cell_and_solve_again(page: Page) -> None:
    pick(page, TASK)
    solve(page)
    asked = page.locator(".pair.asked .grid").first.locator(".cell")
    before = colors(asked)
    page.click('.swatch[aria-label^="6"]')
    asked.nth(0).click()
    assert colors(asked) == [6, *before[1:]]
    expect(page.locator("#task-name")).to_have_text(f"{TASK} (edited)")
    expect(page.locator("#status")).to_contain_text("Solve again")
    solve(page)
    # The experts do not know this query and copy it, each in its own half.
    assert colors(answer(page))[0] == 6
    expect(page.locator("#status")).to_have_text("routing: not right")


def test_compare_two_methods(page: Page) -> None:
    pick(page, TASK)
    page.check("#compare")
    choose(page, "team", "expert:left", lane=1)
    solve(page)
    expect(page.locator(".lane")).to_have_count(2)
    expect(page.locator("#status")).to_have_text("routing: right · single: not right")
    scrub(page, 20)
    assert hidden(page, 0) == hidden(page, 1) == 80
    page.locator(".lane").nth(1).locator(".grid").nth(1).locator(".cell").nth(3).hover()
    expect(page.locator("#inspector .voice")).to_have_count(1)
    page.uncheck("#compare")
    expect(page.locator(".lane")).to_have_count(1)


def test_fixed_cells_stay_and_the_rest_is_inferred(page: Page) -> None:
    pick(page, TASK)
    page.click('.swatch[aria-label^="9"]')
    answer(page).nth(55).click()
    answer(page).nth(3).click()
    expect(page.locator("#fixed-note")).to_have_text("2 cells fixed")
    solve(page)
    found = colors(answer(page))
    assert found[55] == found[3] == 9
    expect(page.locator("#step-label")).to_have_text("step 98 of 98")
    answer(page).nth(3).click()  # the same color again sets it free
    expect(page.locator("#fixed-note")).to_have_text("1 cell fixed")
    page.click("#unfix")
    solve(page)
    expect(page.locator("#status")).to_have_text("routing: right")


def test_every_method_and_rule_that_is_offered_can_be_solved(page: Page) -> None:
    pick(page, TASK)
    unfold(page)
    choose(page, "rule", "fast")
    for cell in range(0, 100, 2):  # fewer cells to fill, fewer steps to wait for
        answer(page).nth(cell).focus()
        page.keyboard.press("0")
    method = page.locator("fieldset").first.locator('[data-name="method"]')
    views = method.locator('option[value="views"]')
    expect(views).to_be_disabled()
    expect(views).to_have_text("views (takes two experts, one of them trained on occupancy)")
    offered = method.locator("option:not(:disabled)").evaluate_all("all => all.map((one) => one.value)")
    assert {"routing", "mixture", "product", "fkc", "vote", "evidence"} <= set(offered)
    assert "single" not in offered
    for name in offered:
        choose(page, "method", name)
        solve(page)
        expect(page.locator("#status")).to_contain_text(f"{name}: ")
        expect(page.locator("#alert")).to_be_hidden()
    choose(page, "method", "routing")
    rules = page.locator('fieldset >> nth=0 >> [data-name="rule"] >> option')
    for name in rules.evaluate_all("options => options.map((one) => one.value)"):
        choose(page, "rule", name)
        solve(page)
        expect(page.locator("#alert")).to_be_hidden()
    for factors in ("row", "block:2x2", "component", "whole"):
        choose(page, "factors", factors)
        solve(page)
        expect(page.locator("#alert")).to_be_hidden()


def test_stopping_frees_the_worker(page: Page, server: Served) -> None:
    choose(page, "method", "vote")
    page.click("#solve")
    expect(page.locator("#step-label")).to_contain_text("of")
    page.click("#stop")
    until(lambda: server.worker.running is None, seconds=5)
    expect(page.locator("#status")).to_have_text("Stopped.")


def test_attempt_2_is_the_solvers_and_comes_after_attempt_1(page: Page, halves: ExpertRegistry) -> None:
    """The experts know the query as it stands, not its reflections, which they copy: another answer."""
    pick(page, TASK)
    unfold(page)
    choose(page, "rule", "fast")
    second, status = page.locator(".second"), page.locator("#status")
    solve(page)
    expect(second).to_be_hidden()  # nobody asked for it
    page.check("#second")  # what is solved need not be solved again
    expect(second).to_contain_text("Attempt 2")
    solved(page)
    expect(status).to_have_text("routing: right")
    task = parse_task(LIBRARY.task(TASK, "rearc", 0), TASK, "library")
    team = compose({name: halves[name].expert for name in ("left", "right")})
    expected = solver.solve(task, team)[0].second
    assert expected is not None
    assert colors(second.locator(".cell")) == expected.grid.flatten().tolist()
    expect(second).to_contain_text(f"What the team answers {expected.reason}.")
    expect(second).to_contain_text("not right")
    assert second.locator(".cell.other").count() == int((expected.grid != task.tests[0].output).sum())
    scrub(page, 0)
    expect(second).to_be_hidden()  # it belongs to the finished answer
    page.click("#last")
    expect(second).to_be_visible()
    page.uncheck("#second")
    expect(second).to_be_hidden()


def test_attempt_2_says_how_far_it_is_and_can_be_stopped(page: Page, server: Served) -> None:
    """While it is under way, attempt 1 is there: looked at, saved, and kept when attempt 2 is stopped."""
    pick(page, TASK)
    page.check("#second")
    page.click("#solve")
    bar = page.locator(".second progress")
    expect(bar).to_be_visible(timeout=60_000)
    expect(page.locator("#status")).to_have_text("routing: right, attempt 2 follows")
    expect(page.locator("#save-png")).to_be_enabled()
    assert hidden(page) == 0
    until(lambda: float(bar.evaluate("bar => bar.value")) > 0.1)
    page.click("#stop")
    until(lambda: server.worker.running is None, seconds=5)
    expect(page.locator(".second")).to_contain_text("Stopped.")
    expect(page.locator("#status")).to_have_text("routing: right")
    page.uncheck("#second")
    page.check("#second")  # once more, to its end
    solved(page)
    expect(page.locator(".second")).to_contain_text("What the team answers")


def test_an_attempt_2_that_fails_leaves_attempt_1_alone(pages: Watched) -> None:
    page = pages.open()
    unfold(page)
    choose(page, "rule", "fast")
    solve(page)
    page.route("**/api/v1/solve", lambda route: route.abort())
    page.check("#second")
    expect(page.locator(".second")).to_contain_text("The server cannot be reached")
    expect(page.locator("#status")).to_have_text("routing: right")
    assert hidden(page) == 0
    pages.complaints.clear()  # the browser notes the failed request itself


def test_the_share_that_is_done_never_goes_back(page: Page) -> None:
    """Attempt 1 once more, four reflections, one run more: a fifth, then most, then the rest."""
    told = [(50, 100), (100, 100), (8, 400), (400, 400), (1, 99), (99, 99)]
    shares = page.evaluate(
        """async (told) => {
            const { Share } = await import("/js/second.js");
            const share = new Share();
            return told.map(([done, total]) => share.take({ done, total }));
        }""",
        told,
    )
    assert shares == sorted(shares)
    assert shares == pytest.approx([0.1, 0.2, 0.214, 0.9, 0.9 + 0.1 / 99, 1.0])


def test_a_method_of_ones_own_is_on_the_page(pages: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "_SPECS", dict(method._SPECS))
    declare("toy", Option("sharpness", "How sharp.", default=0.5, most=2.0))(lambda sharpness: Mixture())
    page = pages.open()
    choose(page, "method", "toy")
    unfold(page)
    sharpness = page.locator('fieldset >> nth=0 >> [data-name="sharpness"]')
    expect(sharpness).to_have_value("0.5")
    sharpness.fill("1.5")
    choose(page, "rule", "fast")
    solve(page)
    expect(page.locator("#status")).to_contain_text("toy: ")
    with page.expect_download() as download:
        page.click("#save-trace")
    assert json.loads(download.value.path().read_text())["runs"][0]["request"]["sharpness"] == 1.5
