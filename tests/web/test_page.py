"""The page's files: nothing from elsewhere, nothing inline, every part that is named exists."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest

from factordiff.arc.svg import EXPERT_COLORS
from factordiff.web.browser_site import IN_THE_BROWSER
from factordiff.web.site import STATIC, modules_of

FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
TEXTS = {path.relative_to(STATIC).as_posix(): path.read_text() for path in FILES}
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, not an address that is asked


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_names_another_host(name: str) -> None:
    assert not re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", TEXTS[name].replace(NAMESPACE, ""))


PAGES = {
    "index.html": "first",
    "workbench.html": "workbench",
    "texts.html": "texts",
}  # and the script that each begins with


def scripts_of(entry: str, replaced: Mapping[str, str] | None = None) -> str:
    """A script and everything that it imports, as one text."""
    others = replaced or {}
    return "".join(TEXTS[f"js/{others.get(name, name)}.js"] for name in modules_of(entry, others))


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_inline(page: str) -> None:
    assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?![^>]*src=)", TEXTS[page])
    assert f'<script type="module" src="js/{PAGES[page]}.js"></script>' in TEXTS[page]
    for name, text in TEXTS.items():
        if name.endswith(".js"):
            assert not re.search(
                r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), name


@pytest.mark.parametrize("page", PAGES)
def test_every_id_that_a_script_asks_for_is_in_the_page(page: str) -> None:
    ids = set(re.findall(r'id="([\w-]+)"', TEXTS[page]))
    asked = set(re.findall(r'\b(?:by|on|getElementById)\("([\w-]+)"', scripts_of(PAGES[page])))
    assert asked
    assert asked <= ids, asked - ids
    assert len(ids) == len(re.findall(r'\bid="', TEXTS[page]))


def test_every_import_leads_to_a_file_and_every_script_is_used() -> None:
    used = "".join(scripts_of(entry) for entry in PAGES.values()) + scripts_of("workbench", IN_THE_BROWSER)
    for name, text in TEXTS.items():
        for wanted in re.findall(r'from "\./([\w.]+)"', text):
            assert f"js/{wanted}" in TEXTS, f"{name} imports {wanted}"
        if name.endswith(".js"):
            assert text in used, f"no page uses {name}"
    for page in PAGES:
        for wanted in re.findall(r'(?:href|src)="([\w./]+)"', TEXTS[page]):
            assert wanted in TEXTS or wanted == "./" or wanted.startswith("api/"), wanted


def test_both_palettes_have_ten_different_colors() -> None:
    for palette in re.findall(r"(?::root|\"\]) \{\s+(--c0:.*?--c9: #\w+;)", TEXTS["grids.css"], re.DOTALL):
        colors = re.findall(r"--c\d: (#\w+)", palette)
        assert len(set(colors)) == 10


def lab(color: str) -> tuple[float, float, float]:
    """CIE L*a*b* of a color as CSS spells it: distances in it are those that an eye sees."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    ]
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(a * b for a, b in zip(row, linear, strict=True)) for row in rows]
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (part / white for part, white in zip(xyz, (0.9505, 1.0, 1.089), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_who_decides_has_colors_that_no_cell_has() -> None:
    """Two colors that differ by 20 are told apart at a glance; an expert's is none of the grid's, in either palette."""
    experts = [re.search(rf"--e{place}: (#\w+)", TEXTS["page.css"]) for place in range(6)]
    cells = re.findall(r"--c\d: (#\w{6})", TEXTS["grids.css"])
    assert len(cells) == 20
    found = [one[1] for one in experts if one]
    assert len(set(found)) == 6
    for place, expert in enumerate(found):
        for other in [*cells, *found[:place]]:
            assert math.dist(lab(expert), lab(other)) > 20, (expert, other)


def test_an_expert_has_one_color_on_every_page_and_in_every_picture() -> None:
    style = (STATIC / "page.css").read_text()
    assert tuple(re.findall(r"--e\d: (#\w{6})", style)) == EXPERT_COLORS
