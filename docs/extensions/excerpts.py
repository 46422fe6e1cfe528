"""Excerpts in search results of a site that is opened from a file, where a page may not read another."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FILE = "excerpts.js"


def keep(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Keep what each page says; the search page, written last, gets all of it in a file that a browser may read."""
    if doctree is not None:
        app.env.page_bodies[f"{page}.html"] = re.sub(r"<svg.*?</svg>", "", context["body"], flags=re.DOTALL)
    elif page == "search":
        static = Path(app.outdir) / "_static"
        static.mkdir(exist_ok=True)
        (static / FILE).write_text(f"const PAGE_BODIES = {json.dumps(app.env.page_bodies)};\n")
        app.add_js_file(FILE)
        app.add_js_file("offline.js")


def begin(app: Sphinx) -> None:
    """No page is written yet."""
    app.env.page_bodies = {}


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("html-page-context", keep)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
