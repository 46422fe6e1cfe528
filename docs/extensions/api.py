"""Entries of the API: in the pages of docs/api a line "- `Name`" becomes what the docstring of that name says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

import factordiff

logger = logging.getLogger(__name__)

FOLDER = "docs/api/"
LISTED = re.compile(r"^- `(\w+)`$", re.MULTILINE)
CODE_OR_FORMULA = re.compile(r"(``?[^`]+``?)|\$([^$]+)\$")


def listed(root: Path) -> list[str]:
    """The names that the pages list, in their order."""
    return [
        name for page in sorted((root / FOLDER).glob("*.md")) for name in LISTED.findall(page.read_text())
    ]


def add_entries(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the entry of each listed name in the place of its line."""
    if docname.startswith(FOLDER):
        source[0] = LISTED.sub(lambda found: _entry(found[1], docname), source[0])


def _entry(name: str, docname: str) -> str:
    if name not in factordiff.__all__:
        logger.warning("lists %s, which is no public name of factordiff: take it out", name, location=docname)
        return f"- `{name}`"
    thing = getattr(factordiff, name)
    kind = "function"
    if inspect.isclass(thing):
        kind = "exception" if issubclass(thing, BaseException) else "class"
    return f"```{{eval-rst}}\n.. auto{kind}:: factordiff.{name}\n```\n"


def check_complete(app: Sphinx) -> None:
    """Every public name has one entry."""
    names = listed(Path(app.srcdir))
    for name in factordiff.__all__:
        if names and names.count(name) != 1:
            asked = (
                f'has {names.count(name)} entries, expected one: a line "- `{name}`" in a page of {FOLDER}'
            )
            logger.warning("the public name %s %s", name, asked, location=f"{FOLDER}README")


def as_restructured_text(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings write formulas as Markdown does; autodoc reads reStructuredText."""

    def role(found: re.Match[str]) -> str:
        return found[1] or rf"\ :math:`{' '.join(found[2].split())}`\ "

    lines[:] = CODE_OR_FORMULA.sub(role, "\n".join(lines)).splitlines()


def tidy_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Leave out the blank in " cell", which is for linters; a default that is made anew cannot be parsed: `...`."""

    def tidy(text: str | None) -> str | None:
        return text and re.sub(r"(Tensor, ')\s+", r"\1", text).replace("<factory>", "...")

    return tidy(signature), tidy(returns)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("builder-inited", check_complete)
    app.connect("source-read", add_entries)
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.connect("autodoc-process-signature", tidy_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
