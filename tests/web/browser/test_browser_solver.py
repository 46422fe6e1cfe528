"""The site that solves in the browser: its parts are the library's, and so are its answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from factordiff import compose
from factordiff.arc.grid import COLORS, to_canvas
from factordiff.arc.published import published_task
from factordiff.arc.shapes import answer_grid
from factordiff.arc.task import parse_task
from factordiff.composition.routing import Routing
from factordiff.experts.expert import substitute
from factordiff.sampling.reveal import Posterior
from factordiff.sampling.rules import PRESETS
from factordiff.solving.question import condition_of
from factordiff.solving.solver import solve
from factordiff.state import SamplerState
from factordiff.web.browser_site import about_browser, write_solver
from factordiff.web.record import record_all
from factordiff.web.registry import ExpertRegistry
from factordiff.web.site import write_site
from factordiff.web.story_list import STORIES
from tests.web.browser.acts import answer, choose, colors, pick, routing, solved
from tests.web.browser.barriers import barriers
from tests.web.browser.conftest import Watched
from tests.web.browser.test_first import hosted
from tests.web.serving import LIBRARY

TASKS = ("c59eb873", "0ca9ddb6", "2281f1f4", "22eb0ac0", "1bfc4729")  # right and not right


@pytest.fixture(scope="module")
def specialists() -> ExpertRegistry:
    torch.set_num_threads(1)
    return ExpertRegistry.load(["trans-color", "trans-occ"])


@pytest.fixture(scope="module")
def address(specialists: ExpertRegistry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site with the specialists on the plainest of static hosts."""
    folder = tmp_path_factory.mktemp("solving") / "site"
    write_site(folder, record_all(STORIES[:1], specialists, LIBRARY), 120, solves=True)
    write_solver(folder, specialists, LIBRARY)
    largest = max(path.stat().st_size for path in (folder / "experts").iterdir())
    assert largest < 5_000_000  # bytes
    with hosted(folder) as address:
        yield address


def test_the_shape_of_an_answer_is_the_librarys(page: Page) -> None:
    rng = np.random.default_rng(0)
    asked = []
    for listed in LIBRARY.listing:
        task = LIBRARY.task(listed["id"], "published", 0)
        right = np.array(task["test"][0]["output"], dtype=np.uint8)
        drawn = rng.integers(0, 10, rng.integers(1, 11, 2)).astype(np.uint8)
        asked += [(task, to_canvas(right)), (task, to_canvas(drawn))]
    script = """async (asked) => {
        const { answerGrid } = await import("/js/shapes.js");
        return asked.map(([task, canvas]) => answerGrid(canvas, task, 0));
    }"""
    found = page.evaluate(script, [[task, canvas.tolist()] for task, canvas in asked])
    for (task, canvas), rows in zip(asked, found, strict=True):
        shown = [(np.array(pair["input"]), np.array(pair["output"])) for pair in task["train"]]
        assert rows == answer_grid(canvas, shown, np.array(task["test"][0]["input"])).tolist()


def test_what_the_browser_tells_an_expert_is_what_the_library_tells(page: Page) -> None:
    """Where each grid ends too: the runtime's place is taken by one that keeps what it is given."""
    script = """async (tasks) => {
        const { asked } = await import("/js/browser_experts.js");
        const kept = [];
        globalThis.ort = {
            env: { wasm: {} },
            Tensor: class {
                constructor(type, values, shape) { Object.assign(this, { values: Array.from(values, Number), shape }); }
            },
            InferenceSession: {
                create: async () => ({ run: async (told) => { kept.push(told); return { logits: {} }; } }),
            },
        };
        for (const task of tasks) await (await asked(["any"], task, 0))(Array(100).fill(10));
        return kept;
    }"""
    zeros = {
        "train": [{"input": [[1, 2], [0, 0], [0, 0]], "output": [[3, 0, 0, 0]]}],
        "test": [{"input": [[5], [0]]}],
    }
    asked = [zeros, *(LIBRARY.task(task, "published", 0) for task in TASKS)]
    for task, told in zip(asked, page.evaluate(script, asked), strict=True):
        condition = condition_of(parse_task(task, "mine", "here"), 0)
        expected = condition.grids(sees_sizes=True)
        for name, grid in zip(("query", "inputs", "outputs"), expected, strict=True):
            assert told[name]["shape"] == list(grid.shape)
            assert told[name]["values"] == grid.flatten().tolist(), name
        assert told["x_t"]["values"] == [10] * 100


@pytest.mark.parametrize("temperatures", [(1.0, 1.0), (1.0, 0.125)])
@pytest.mark.parametrize("sharpness", [1.0, 8.0, 30.0])
def test_a_step_is_the_librarys(page: Page, temperatures: tuple[float, float], sharpness: float) -> None:
    """Who speaks, which cells are revealed and with which colors, for drawn logits and a half-filled canvas."""
    generator = torch.Generator().manual_seed(3)
    logits = sharpness * torch.randn(2, 1, 100, 10, generator=generator)
    x_t = torch.where(torch.rand(1, 100, generator=generator) < 0.4, 4, COLORS.mask)
    state = SamplerState.begin(x_t, 10, 2)
    said = torch.stack([substitute(one, x_t, COLORS) for one in logits])
    composed = Routing(temperatures=temperatures)(said, state)
    doubt = Routing()(composed.log_probs[None], state).log_doubt
    assert doubt is not None
    assert composed.routing is not None
    chosen = PRESETS["fast"].choose(Posterior(composed.log_probs, doubt, {}), state.masked, state)
    script = """async ([x, logits, temperatures]) => {
        const { decodeStep } = await import("/js/decoding.js");
        return decodeStep(x, logits, temperatures);
    }"""
    told = page.evaluate(script, [x_t[0].tolist(), logits.flatten(1).tolist(), temperatures])
    cells = state.masked[0].nonzero().flatten()
    assert told["step"]["cells"] == cells.tolist()
    assert told["step"]["routing"] == composed.routing[0, cells].tolist()
    assert told["step"]["revealed"] == chosen[0].nonzero().flatten().tolist()
    assert told["after"] == torch.where(chosen, composed.log_probs.argmax(-1), x_t)[0].tolist()


def test_what_the_page_cannot_compute_itself_is_not_offered(specialists: ExpertRegistry) -> None:
    about = about_browser(specialists)
    assert [one["name"] for one in about["methods"]] == ["routing", "single"]
    assert [[option["name"] for option in one["options"]] for one in about["methods"]] == [
        ["temperatures"],
        [],
    ]
    assert about["rules"] == ["fast"]
    assert [team["name"] for team in about["teams"]] == ["col+occ"]


def test_answers_in_the_browser_are_the_librarys(pages: Watched, address: str) -> None:
    """The fixed list, by the team and by one expert alone: the same canvas, the same grid, as many passes."""
    page = pages.open(f"{address}workbench.html", still=True)
    page.select_option("#source", "published")
    team, alone = compose("col+occ"), compose(["trans-color"], "single")
    asked = [(task, team, "team:col+occ") for task in TASKS] + [(TASKS[0], alone, "expert:trans-color")]
    rights = []
    for task, of, choice in asked:
        expected = solve(published_task(task), of, attempts=1)[0]
        pick(page, task)
        page.select_option("#source", "published")
        choose(page, "team", choice)
        page.click("#solve")
        solved(page)
        assert colors(answer(page)) == expected.canvas.tolist(), task
        rights.append(bool(expected.right))
        height, width = expected.shape
        expect(page.locator(".lane .verdict").first).to_contain_text(
            f"{'right' if expected.right else 'not right'} · {height} × {width} · {expected.executed_passes} passes"
        )
        if expected.routing is not None:
            letters = np.array(routing(page).all_text_contents()).reshape(10, 10)[:height, :width]
            assert (letters == np.array(["A", "B"])[expected.routing.labels]).all()
    assert set(rights) == {True, False}


def test_from_the_first_screen_to_a_task_of_ones_own(pages: Watched, address: str) -> None:
    """No server, no other machine: a story, the workbench, a fixed cell, a drawn task, nothing that is not there."""
    page = pages.open(address, still=True)
    page.click("#to-workbench")
    expect(page.locator("html[data-ready=yes]")).to_be_attached()
    expect(page.locator('[data-needs="server"]').first).to_be_hidden()
    pick(page, TASKS[0])
    page.click('.swatch[aria-label^="9"]')
    answer(page).nth(0).click()
    page.click("#solve")
    solved(page)
    assert colors(answer(page))[0] == 9
    page.check("#compare")
    expect(page.locator('fieldset >> nth=1 >> [data-name="method"]')).to_have_value("single")
    page.click("#solve")
    solved(page)
    expect(page.locator(".lane")).to_have_count(2)
    page.uncheck("#compare")
    page.click("#new-task")
    page.click("#solve")
    solved(page)
    assert 10 not in colors(answer(page))
    assert barriers(page) == []
    pages.open(f"{address}#story={STORIES[0].name}", still=True).click("#try")
