"""Python files that pages link to, and those behind the entries of the API, as pages to read."""

from __future__ import annotations

import html
import inspect
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

import factordiff

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "source"


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Where the source of an entry is, as seen from the pages in docs/api."""
    thing: Any = factordiff
    for part in info["fullname"].split("."):
        thing = getattr(thing, part, None)
    if isinstance(thing, property | cached_property):
        thing = thing.fget if isinstance(thing, property) else thing.func
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return None  # an attribute: no code of its own
    line = inspect.getsourcelines(thing)[1]
    return f"../../{FOLDER}/{_file_of(thing).removesuffix('.py')}.html#L-{line}"


def _file_of(thing: Any) -> str:
    """The file in which something is defined, from the root of the repository."""
    return Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").resolve().relative_to(ROOT).as_posix()


def link_to_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Lead links to Python files to their pages; other files are copied, as Sphinx does it."""
    here = app.env.docname
    for link in list(doctree.findall(addnodes.download_reference)):
        _, file = app.env.relfn2path(link["reftarget"], here)
        if not file.endswith(".py"):
            continue
        name = Path(file).resolve().relative_to(Path(app.srcdir).resolve()).as_posix()
        app.env.linked_sources.add(name)
        place = app.builder.get_target_uri(f"{FOLDER}/{name.removesuffix('.py')}")
        uri = relative_uri(app.builder.get_target_uri(here), place)
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """One page for each file, with an anchor at each line."""
    behind = {_file_of(getattr(factordiff, name)) for name in factordiff.__all__}
    for name in sorted(app.env.linked_sources | behind):
        code = app.builder.highlighter.highlight_block((ROOT / name).read_text(), "python", linespans="L")
        body = f"<h1><code>{html.escape(name.removeprefix('src/'))}</code></h1>\n{code}"
        yield f"{FOLDER}/{name.removesuffix('.py')}", {"title": name, "body": body}, "page.html"


def begin(app: Sphinx) -> None:
    """No file is linked yet."""
    app.env.linked_sources = set()


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("doctree-read", link_to_pages, priority=400)  # before Sphinx collects what is to be copied
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
