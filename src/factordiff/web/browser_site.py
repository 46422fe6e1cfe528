"""The larger site, which also solves: experts as ONNX files beside the page, run in the browser.

It needs a static host: browsers load neither networks nor the runtime's WebAssembly from a file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factordiff.errors import InvalidInput, Unavailable
from factordiff.files import write_whole
from factordiff.web.about import about_server
from factordiff.web.library import Library
from factordiff.web.limits import Limits
from factordiff.web.onnx_export import export_onnx
from factordiff.web.registry import ExpertRegistry
from factordiff.web.site import STATIC, bundled

IN_THE_BROWSER = {"api": "browser_api"}  # modules that a page without a server has others for

RUNTIME = "onnxruntime-web@1.23.2"
RUNTIME_FOLDER = Path("build/ort/node_modules/onnxruntime-web/dist")
RUNTIME_FILES = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
MODULE = '<script type="module" src="js/workbench.js"></script>'
SCRIPTS = ("stories.js", "solver.js", f"ort/{RUNTIME_FILES[0]}", "workbench.js")
METHODS = ("routing", "single")  # what the page computes itself, cell by cell and with the `fast` rule

Progress = Callable[[int, int, str], None]


def check_runtime(folder: Path = RUNTIME_FOLDER) -> Path:
    """Where onnxruntime-web is, which is not shipped; what is missing is said before anything is recorded."""
    missing = [name for name in RUNTIME_FILES if not (folder / name).is_file()]
    if missing:
        raise Unavailable(
            f"onnxruntime-web: {folder / missing[0]} is not there; `make site-with-experts` fetches it, or "
            f"npm install --no-save --prefix build/ort {RUNTIME}"
        )
    return folder


def write_solver(
    site: Path,
    registry: ExpertRegistry,
    library: Library,
    runtime: Path = RUNTIME_FOLDER,
    on_progress: Progress | None = None,
) -> None:
    """Add the workbench, the experts and the runtime to a site that is written already."""
    page = (STATIC / "workbench.html").read_text()
    if page.count(MODULE) != 1:
        raise InvalidInput(f"export: workbench.html does not load {MODULE}")
    (site / "experts").mkdir()
    for number, entry in enumerate(registry.entries.values()):
        if on_progress is not None:
            on_progress(number, len(registry), entry.name)
        export_onnx(entry.name, entry.expert, site / "experts" / f"{entry.name}.onnx")
    (site / "ort").mkdir()
    for name in RUNTIME_FILES:
        shutil.copyfile(check_runtime(runtime) / name, site / "ort" / name)
    told = {
        "about": about_browser(registry),
        "listing": [{**one, "instances": 1} for one in library.listing],
        "tasks": {one["id"]: _tests(one, library) for one in library.listing},
    }
    data = json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    write_whole(site / "solver.js", f"globalThis.FACTORDIFF_SOLVER = {data};\n".encode())
    write_whole(site / "workbench.js", bundled("workbench", IN_THE_BROWSER).encode())
    scripts = "\n  ".join(f'<script src="{name}" defer></script>' for name in SCRIPTS)
    write_whole(site / "workbench.html", page.replace(MODULE, scripts).encode())


def about_browser(registry: ExpertRegistry) -> dict[str, Any]:
    """What the page offers when it solves itself: routing cell by cell, one expert alone, the `fast` rule."""
    about = about_server(registry, Limits())
    methods = [one for one in about["methods"] if one["name"] in METHODS]
    for method in methods:
        method["options"] = [option for option in method["options"] if option["name"] == "temperatures"]
    teams = [
        team
        for team in about["teams"]
        if team["method"] == "routing" and team["options"].keys() <= {"temperatures"}
    ]
    return {**about, "methods": methods, "teams": teams, "rules": ["fast"], "in_browser": True}


def _tests(listed: dict[str, Any], library: Library) -> dict[str, list[dict[str, Any]]]:
    """The published tests of a task and its first RE-ARC query, by source."""
    return {
        "published": [
            library.task(listed["id"], "published", number) for number in range(listed["published"])
        ],
        "rearc": [library.task(listed["id"], "rearc", 0)],
    }
