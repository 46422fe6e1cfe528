"""The page's files: nothing from elsewhere, nothing inline, every part that is named exists."""

from __future__ import annotations

import re

import pytest

from factordiff.web.server import STATIC

FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
TEXTS = {path.relative_to(STATIC).as_posix(): path.read_text() for path in FILES}
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, not an address that is asked


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_names_another_host(name: str) -> None:
    assert not re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", TEXTS[name].replace(NAMESPACE, ""))


def test_nothing_is_inline() -> None:
    page = TEXTS["index.html"]
    assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?![^>]*src=)", page)
    for name, text in TEXTS.items():
        if name.endswith(".js"):
            assert not re.search(
                r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), name


def test_every_id_that_a_script_asks_for_is_in_the_page() -> None:
    ids = set(re.findall(r'id="([\w-]+)"', TEXTS["index.html"]))
    scripts = "".join(text for name, text in TEXTS.items() if name.endswith(".js"))
    asked = set(re.findall(r'(?:by|on|getElementById)\("([\w-]+)"', scripts))
    assert asked
    assert asked <= ids, asked - ids
    assert len(ids) == len(re.findall(r'id="', TEXTS["index.html"]))


def test_every_import_leads_to_a_file() -> None:
    for name, text in TEXTS.items():
        for wanted in re.findall(r'from "\./([\w.]+)"', text):
            assert f"js/{wanted}" in TEXTS, f"{name} imports {wanted}"
    for wanted in re.findall(r'(?:href|src)="([\w./]+)"', TEXTS["index.html"]):
        assert wanted in TEXTS or wanted.startswith("api/"), wanted


def test_both_palettes_have_ten_different_colors() -> None:
    for palette in re.findall(r"(?::root|\"\]) \{\s+(--c0:.*?--c9: #\w+;)", TEXTS["grids.css"], re.DOTALL):
        colors = re.findall(r"--c\d: (#\w+)", palette)
        assert len(set(colors)) == 10
