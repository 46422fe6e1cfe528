"""Every link in the README, the docs and the notebook leads to something that is there, headings included."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")])
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def prose(page: Path) -> str:
    """The text of a page without its code, in which brackets mean something else."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.DOTALL)


def links(page: Path) -> list[str]:
    return [one or other for one, other in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page)))]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = sum(1 for one in found if re.fullmatch(rf"{re.escape(name)}(-\d+)?", one))
        found.add(f"{name}-{number}" if number else name)
    return found


def broken(page: Path) -> list[str]:
    """What a page links to that is not there."""
    wrong = []
    for link in links(page):
        if re.match(r"https?:|mailto:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        inside = target.is_relative_to(ROOT) and target.exists()
        if not inside or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_the_readme_leads_to_every_page() -> None:
    """From the README one reaches every page of the docs, directly or through another."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix not in (".md", ".ipynb"):
            continue
        reached.add(page)
        waiting += [
            (page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link
        ]
    assert not set(PAGES) - reached, sorted(map(str, set(PAGES) - reached))


def test_a_wrong_link_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_links.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# One, two `three`\n## Again\n## Again\n[a](#one-two-three) [b](#again-1) [c](other.md) [d](#four)\n"
        '[e](page.md#again) [f](https://example.org) `[g](code)` $[h](math)$\n```\n[i](block)\n```\n<img src="no.png">'
    )
    assert broken(page) == ["other.md", "#four", "no.png"]
