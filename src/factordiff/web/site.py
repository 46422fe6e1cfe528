"""The page without a server: HTML, CSS, classic scripts and recordings that open from a file or any static host."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from factordiff.errors import InvalidInput
from factordiff.files import write_whole
from factordiff.web.record import Recording

STATIC = Path(__file__).parent / "static"
COPIED = ("page.css", "grids.css", "story.css", "icon.svg")
ENTRY = "first"  # the script that the page begins with
MODULE = '<script type="module" src="js/first.js"></script>'
CLASSIC = '<script src="stories.js" defer></script>\n  <script src="page.js" defer></script>'
_IMPORT = re.compile(r'^import (?:\{ ([^}]*) \}|\* as (\w+)) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const|let) (\w+)", re.MULTILINE)


def check_folder(folder: str | Path) -> Path:
    """The folder to write into, if that would overwrite nothing."""
    site = Path(folder)
    if site.exists() and (not site.is_dir() or any(site.iterdir())):
        raise InvalidInput(f"export: {site} is there already and not empty; name a new folder, or empty it")
    return site


def write_site(
    folder: str | Path, recordings: Sequence[Recording], known_tasks: int, solves: bool = False
) -> Path:
    """Write the site into an empty or new folder; returns its first page. `solves`: a workbench follows."""
    site = check_folder(folder)
    page = (STATIC / "index.html").read_text()
    if page.count(MODULE) != 1:
        raise InvalidInput(f"export: index.html does not load {MODULE}")
    stories = {"known_tasks": known_tasks, "solves": solves, "stories": [one.spelled() for one in recordings]}
    # Not </script> nor a line separator: the data stands inside a script.
    data = json.dumps(stories, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    site.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copyfile(STATIC / name, site / name)
    write_whole(site / "stories.js", f"globalThis.FACTORDIFF_RECORDED = {data};\n".encode())
    write_whole(site / "page.js", bundled(ENTRY).encode())
    write_whole(site / "index.html", page.replace(MODULE, CLASSIC).encode())
    return site / "index.html"


def bundled(entry: str, replaced: Mapping[str, str] | None = None) -> str:
    """A module and all that it imports as one classic script: browsers load no modules from a file.

    `replaced` names modules that others take the place of, under their names.
    """
    others = replaced or {}
    parts = [_as_function(name, _source(others.get(name, name))) for name in modules_of(entry, others)]
    return '"use strict";\n(() => {\nconst modules = {};\n' + "\n".join(parts) + "\n})();\n"


def modules_of(entry: str, replaced: Mapping[str, str]) -> list[str]:
    """A module and all that it imports, each after what it imports itself."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise InvalidInput(f"export: the scripts {' and '.join(above)} import each other")
        for _, _, wanted in _IMPORT.findall(_source(replaced.get(name, name))):
            if wanted not in order:
                visit(wanted, (*above, name))
        if name not in order:
            order.append(name)

    visit(entry, ())
    return order


def _source(name: str) -> str:
    return (STATIC / "js" / f"{name}.js").read_text()


def _as_function(name: str, source: str) -> str:
    """A module as a function that runs once and keeps its names to itself."""
    names = [exported for _, exported in _EXPORT.findall(source)]
    body = _IMPORT.sub(
        lambda found: (
            f"const {found[2] or '{ ' + found[1].replace(' as ', ': ') + ' }'} = modules.{found[3]};"
        ),
        source,
    )
    body = _EXPORT.sub(r"\1 \2", body)
    left = re.search(r"^(?:import|export)\b.*$", body, re.MULTILINE)
    if left:
        raise InvalidInput(f"export: {name}.js has a line that a classic script cannot hold: {left[0]}")
    return f"modules.{name} = (() => {{\n{body}\nreturn {{ {', '.join(names)} }};\n}})();"
