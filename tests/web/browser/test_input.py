"""Tasks of one's own, bad input, links, files that come out."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

from factordiff.sampling.trace import Trace
from tests.web.browser.acts import answer, choose, colors, pick, scrub, solve, solved, unfold
from tests.web.browser.conftest import Watched
from tests.web.serving import Served
from tests.web.stubs import task


def test_paste_a_task(page: Page) -> None:
    page.click("#paste-task")
    page.fill("#paste-text", json.dumps(task(side=4)))
    page.click("#paste-use")
    expect(page.locator("#task-name")).to_have_text("your own task")
    expect(page.locator(".pair")).to_have_count(2)
    solve(page)
    expect(page.locator("#status")).to_contain_text("routing: ")


def test_what_is_wrong_with_a_pasted_task_is_said(page: Page) -> None:
    page.click("#paste-task")
    wrong = [
        ("{", "not valid JSON"),
        ("{}", "needs a list “train”"),
        (json.dumps({**task(), "test": [{"input": [[0] * 11]}]}), "at most 10 × 10"),
        (
            json.dumps({**task(), "test": [{"input": [[0, 12]]}]}),
            "column 2: expected a color from 0 to 9, got 12",
        ),
        (json.dumps({**task(), "test": [{"input": [[0, 1], [2]]}]}), "rows of the same length"),
    ]
    for text, sentence in wrong:
        page.fill("#paste-text", text)
        page.click("#paste-use")
        expect(page.locator("#paste-error")).to_contain_text(sentence)
    page.click("#paste-cancel")
    expect(page.locator("#paste-dialog")).to_be_hidden()


def test_rows_of_zeros_are_sent_as_they_were_given(page: Page) -> None:
    """Nothing trims a grid on its way: how many rows it has is what experts that see sizes go by."""
    mine = {
        "train": [{"input": [[1, 2], [0, 0], [0, 0]], "output": [[3, 0, 0, 0]]}],
        "test": [{"input": [[5], [0]]}],
    }
    page.click("#paste-task")
    page.fill("#paste-text", json.dumps(mine))
    page.click("#paste-use")
    with page.expect_request("**/solve") as asked:
        page.click("#solve")
    sent = asked.value.post_data_json["task"]
    assert [[pair["input"], pair["output"]] for pair in sent["train"]] == [
        [pair["input"], pair["output"]] for pair in mine["train"]
    ]
    assert sent["test"][0]["input"] == mine["test"][0]["input"]
    solved(page)


def test_upload_a_task(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(task()))
    page.set_input_files("#file", file)
    expect(page.locator("#task-name")).to_have_text("your own task")
    file.write_text("no task")
    page.set_input_files("#file", file)
    expect(page.locator("#alert")).to_contain_text("not valid JSON")


def test_draw_a_task(page: Page) -> None:
    page.click("#new-task")
    first = page.locator(".pair").first.locator(".grid").first
    page.click('.swatch[aria-label^="3"]')
    first.locator(".cell").nth(4).click()
    assert colors(first.locator(".cell")) == [0, 0, 0, 0, 3, 0, 0, 0, 0]
    rows = page.locator(".pair").first.get_by_label("Example 1, input: rows")
    rows.fill("5")
    rows.press("Enter")
    expect(page.locator(".pair").first.locator(".grid").first.locator(".cell")).to_have_count(15)
    page.click("#add-pair")
    expect(page.locator(".pair:not(.asked)")).to_have_count(3)
    page.locator('[aria-label="Remove pair 3"]').click()
    expect(page.locator(".pair:not(.asked)")).to_have_count(2)
    solve(page)


def test_the_servers_refusal_is_shown_as_it_is(pages: Watched) -> None:
    page = pages.open()
    unfold(page)
    seed = page.locator('fieldset >> nth=0 >> [data-name="seed"]')
    seed.fill("-1")
    seed.press("Tab")
    page.click("#solve")
    expect(page.locator("#alert")).to_contain_text("seed: expected greater than or equal to 0, got -1")
    assert pages.complaints  # the browser notes the status 422 itself
    pages.complaints.clear()
    page.click('#alert [aria-label="Dismiss"]')
    expect(page.locator("#alert")).to_be_hidden()


def test_a_link_restores_everything(pages: Watched) -> None:
    page = pages.open()
    pick(page, "0ca9ddb6")
    page.check("#compare")
    page.check("#second")
    choose(page, "method", "product", lane=1)
    unfold(page)
    choose(page, "factors", "block:2x2")
    temperature = page.locator('fieldset >> nth=0 >> [data-name="temperatures-right"]')
    temperature.fill("0.25")
    temperature.press("Tab")
    page.select_option("#palette", "safe")
    page.click('.swatch[aria-label^="7"]')
    page.locator(".pair").first.locator(".cell").first.click()
    answer(page).nth(42).click()
    solve(page)
    scrub(page, 33)
    page.click("#copy-link")
    expect(page.locator("#copy-link")).to_have_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    shown = [colors(answer(page, lane)) for lane in (0, 1)]
    pairs = colors(page.locator(".pair .cell"))
    page.evaluate("localStorage.clear()")

    other = pages.open(link)
    solved(other)
    expect(other.locator("#step-label")).to_have_text("step 33 of 99")
    assert [colors(answer(other, lane)) for lane in (0, 1)] == shown
    assert colors(other.locator(".pair .cell")) == pairs
    expect(other.locator("#task-name")).to_have_text("0ca9ddb6 (edited)")
    expect(other.locator('fieldset >> nth=0 >> [data-name="temperatures-right"]')).to_have_value("0.25")
    expect(other.locator('fieldset >> nth=0 >> [data-name="factors"]')).to_have_value("block:2x2")
    expect(other.locator('fieldset >> nth=1 >> [data-name="method"]')).to_have_value("product")
    expect(other.locator("html")).to_have_attribute("data-palette", "safe")
    expect(other.locator("#fixed-note")).to_have_text("1 cell fixed")
    expect(other.locator("#second")).to_be_checked()


def test_a_damaged_link_is_said_to_be_one(pages: Watched, server: Served) -> None:
    page = pages.open(f"http://127.0.0.1:{server.port}/workbench.html#s=nonsense")
    expect(page.locator("#alert")).to_contain_text("This link is damaged")
    solve(page)


def test_what_is_saved_can_be_read(page: Page, tmp_path: Path) -> None:
    unfold(page)
    choose(page, "rule", "confidence")
    page.locator('fieldset >> nth=0 >> [data-name="number"]').fill("12")
    page.locator('fieldset >> nth=0 >> [data-name="number"]').press("Tab")
    page.check("#second")
    solve(page)
    steps = int(page.locator("#scrub").get_attribute("max") or 0)

    def saved(button: str) -> Path:
        with page.expect_download() as download:
            page.click(button)
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        return file

    with Image.open(saved("#save-png")) as picture:
        assert picture.format == "PNG"
        assert picture.width > 600
        still = picture.convert("RGB").copy()
    # The input on the left, and the colors of who decides in the legend below the grids.
    style = "getComputedStyle(document.documentElement).getPropertyValue(name)"
    color = partial(page.evaluate, f"name => {style}")
    seen = [
        {"#{:02x}{:02x}{:02x}".format(*still.getpixel((x, y))) for x in xs for y in ys}
        for xs, ys in ((range(25, 183), range(70, 226)), (range(208, 700), range(230, still.height)))
    ]
    asked = set(colors(page.locator(".pair.asked .grid").first.locator(".cell")))
    assert {color(f"--c{value}") for value in asked} <= seen[0]
    assert {color("--e0"), color("--e1")} <= seen[1]
    with Image.open(saved("#save-gif")) as film:
        assert film.format == "GIF"
        assert film.n_frames == steps + 1 == 13
        film.seek(steps)
        assert film.size == still.size
        # The same picture below its caption, up to the palette's rounding.
        differing = sum(
            max(
                abs(one - other)
                for one, other in zip(still.getpixel(at), film.convert("RGB").getpixel(at), strict=True)
            )
            > 16
            for at in [(x, y) for x in range(30, still.width - 30, 17) for y in range(70, 225, 13)]
        )
        assert differing < 12
    trace = json.loads(saved("#save-trace").read_text())
    assert trace["runs"][0]["request"]["method"] == "routing"
    assert len(trace["runs"][0]["steps"]) == steps
    assert "reflections of the task" in trace["runs"][0]["second"]["reason"]
    told = Trace.from_json(json.dumps(trace["runs"][0]["trace"]))
    assert len(told.steps) == steps
    task_file = json.loads(saved("#save-task").read_text())
    assert task_file["train"]
