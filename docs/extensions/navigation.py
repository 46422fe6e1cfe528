"""The order of the pages, from `navigation` in conf.py, so that the pages themselves stay plain Markdown."""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let a page that lists others say so to Sphinx; the lists are for the sidebar, and hidden in the text."""
    for caption, pages in app.config.navigation.get(docname, {}).items():
        there = [page for page in pages if _exists(Path(app.srcdir), page)]
        if there:
            heading = f":caption: {caption}\n" if caption else ""
            source[0] += (
                f"\n\n```{{toctree}}\n:hidden:\n:glob:\n{heading}\n"
                + "\n".join(map(_from_root, there))
                + "\n```\n"
            )


def _exists(root: Path, page: str) -> bool:
    """Whether "place", "Title <place>" or a pattern leads to a page. One that is in no list is Sphinx's to report."""
    place = page.rpartition("<")[2].rstrip(">")
    return any(root.glob(f"{place}.md"))


def _from_root(page: str) -> str:
    """The same, from the root of the pages wherever it is listed."""
    title, bracket, place = page.rpartition("<")
    return f"{title}{bracket}/{place}"


def write_index(app: Sphinx, failure: Exception | None) -> None:
    """The first page once more under the name by which folders are opened."""
    if failure is None:
        out = Path(app.outdir)
        shutil.copyfile(out / f"{app.config.root_doc}.html", out / "index.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_config_value("navigation", {}, "env")
    app.connect("source-read", add_contents)
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
