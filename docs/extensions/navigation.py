"""The order of the pages, from `navigation` in conf.py, so that the pages themselves stay plain Markdown."""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let a page that lists others say so to Sphinx; the lists are for the sidebar, and hidden in the text."""
    for caption, pages in app.config.navigation.get(docname, {}).items():
        there = [f"/{page}" for page in pages if list(Path(app.srcdir).glob(f"{page}.md"))]
        if there:
            heading = f":caption: {caption}\n" if caption else ""
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n{heading}\n" + "\n".join(there) + "\n```\n"


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
