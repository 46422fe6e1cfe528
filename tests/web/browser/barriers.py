"""axe-core on a page: barriers that would keep somebody from using it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[3] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")


def barriers(page: Page) -> list[str]:
    """What axe finds that is serious: the rule, and the first element that breaks it."""
    if not AXE.exists():
        pytest.fail(f"{AXE} is missing: `make test-web` fetches it")
    page.evaluate(AXE.read_text())  # not as a script of the page: its policy would not let it in
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
    return [
        f"{one['id']} ({one['impact']}), {len(one['nodes'])} times, such as {one['nodes'][0]['html'][:160]}: "
        f"{one['nodes'][0].get('failureSummary', '')[:200]}"
        for one in found
        if one["impact"] in GRAVE
    ]
