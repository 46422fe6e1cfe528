"""A real browser at a real server; a test fails if the page complains or asks any other machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import torch
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from factordiff.web.record import Recording, record_all
from factordiff.web.registry import ExpertRegistry, RegisteredExpert
from factordiff.web.site import write_site
from factordiff.web.story_list import STORIES
from tests.web.serving import LIBRARY, Served, serve
from tests.web.stubs import CELL, Knower, answers_of

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def halves() -> ExpertRegistry:
    """Two experts that each know one half of every first query's answer, at a few milliseconds a pass."""
    known = answers_of([LIBRARY.task(one["id"], "rearc", 0) for one in LIBRARY.listing])
    left = CELL % 10 < 5
    about = {"backbone": "stub", "parameters": None}
    return ExpertRegistry(
        [
            RegisteredExpert("left", Knower(left, known, 0.002), about=about),
            RegisteredExpert("right", Knower(~left, known, 0.002), about=about),
        ]
    )


@pytest.fixture(scope="session")
def server(halves: ExpertRegistry) -> Iterator[Served]:
    with serve(halves) as running:
        yield running


@pytest.fixture(scope="session")
def shipped() -> ExpertRegistry:
    """The experts that tell the stories."""
    torch.set_num_threads(1)  # two that wait for each other are slower than one on a busy machine
    return ExpertRegistry.load(["trans-full", "conv-full", "trans-color", "trans-occ"])


@pytest.fixture(scope="session")
def live(shipped: ExpertRegistry) -> Iterator[Served]:
    with serve(shipped) as running:
        yield running


@pytest.fixture(scope="session")
def recordings(shipped: ExpertRegistry) -> list[Recording]:
    """Some of the stories: two alone and together, a correction, a comparison, and those of worlds."""
    names = ("together", "change-its-mind", "product-wins", "fast-or-exact")
    wanted = [story for story in STORIES if story.name in names or story.kind != "grid"]
    return record_all(wanted, shipped, LIBRARY)


@pytest.fixture(scope="session")
def site(recordings: list[Recording], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of them."""
    return write_site(tmp_path_factory.mktemp("export") / "site", recordings, 120)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            args=list(FLAGS),
            viewport={"width": 1360, "height": 900},
            accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
        )
        yield context
        context.close()


class Watched:
    """Pages whose console and requests are watched."""

    def __init__(self, browser: BrowserContext, server: Served) -> None:
        self.browser, self.address = browser, f"http://127.0.0.1:{server.port}/workbench.html"
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(
        self,
        address: str | None = None,
        ready: bool = True,
        still: bool = False,
        dark: bool = False,
        size: tuple[int, int] = (1280, 800),
    ) -> Page:
        """A page, once it is ready; `still`: for somebody who asked for little motion."""
        page = self.browser.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(
            reduced_motion="reduce" if still else "no-preference", color_scheme="dark" if dark else "light"
        )
        page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address or self.address)
        if ready:
            expect(page.locator("html[data-ready=yes]")).to_be_attached(timeout=90_000)  # it may solve first
        return page


@pytest.fixture
def pages(browser: BrowserContext, server: Served) -> Iterator[Watched]:
    watched = Watched(browser, server)
    yield watched
    for page in browser.pages[1:]:
        page.evaluate("localStorage.clear()")
        page.close()
    assert not watched.complaints
    hosts = {urlsplit(url).hostname for url in watched.requests if not url.startswith(("blob:", "data:"))}
    assert hosts <= {"127.0.0.1", None}, hosts  # None: a file


@pytest.fixture
def page(pages: Watched) -> Page:
    return pages.open()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: into the docs when asked for (FACTORDIFF_PICTURES=1), else away."""
    docs = Path(__file__).parents[3] / "docs" / "pictures"
    return docs if os.environ.get("FACTORDIFF_PICTURES") else tmp_path
