"""The tree of the package as a page: one line per file, from the first sentence of its docstring.

python docs/tree.py     writes docs/tree.md
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "factordiff"
PAGE = ROOT / "docs" / "tree.md"
HEAD = """# The tree

One line per file, from the first sentence of its docstring (`make tree`). Folders stand in
the order of their imports: each knows only those above it, which a test holds them to.

"""
COLUMN, WIDTH = 26, 97

# Folders in the order of the imports, each after those it builds on.
ORDER = [
    "diffusion", "experts", "networks", "composition", "sampling", "engine", "toy", "fitting", "training", "team",
    "arc", "text", "solving", "report", "evaluation", "bench", "experiments", "worlds", "cli", "web", "weights",
]  # fmt: skip
# Folders and files that cannot speak for themselves.
SPEECHLESS = {
    "__init__.pyi": "The public list: every name and its home.",
    "arc/data": "The built data set: arrays, manifest, the measurements behind the choice of tasks.",
    "py.typed": "The package carries its types.",
    "report/page.css": "How the report's page looks.",
    "report/page.js": "Tables that can be sorted, and unfolded on paper.",
    "solving/page.css": "How a page of answers looks.",
    "text/packages.json": "The packages of the corpus: version, licence and sha256 of each.",
    "weights": "The shipped experts.",
    "web/static": "The page itself.",
}
MATHEMATICS = {
    r"\mid": "|",
    r"\prod_m": "the product of",
    r"\alpha": "alpha",
    r"\sigma": "sigma",
    r"\log": "log ",
}


def sentence(docstring: str) -> str:
    """The first sentence of a docstring, as plain text."""
    text = " ".join(docstring.split("\n\n")[0].split())
    for symbol, word in MATHEMATICS.items():
        text = text.replace(symbol, word)
    text = " ".join(re.sub(r"[$`{}\\]", "", text).split())
    text = re.split(r"(?<=[a-z)\]\"])\. ", text)[0].rstrip(".") + "."
    room = WIDTH - COLUMN - 4
    return text if len(text) <= room else text[: text.rindex(" ", 0, room)].rstrip(",;:") + " ..."


def says(path: Path) -> str:
    """What a file or folder says about itself."""
    place = path.relative_to(PACKAGE).as_posix()
    if place in SPEECHLESS:
        return SPEECHLESS[place]
    speaker = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(speaker.read_text())) if speaker.suffix == ".py" else None
    if not docstring:
        raise SystemExit(f"docs/tree.py: SPEECHLESS has no line for {place}")
    return sentence(docstring)


def place_in_order(entry: Path) -> tuple[bool, int, str]:
    """Files first, then folders as the imports go."""
    known = ORDER.index(entry.name) if entry.name in ORDER else len(ORDER)
    return entry.is_dir(), known if entry.is_dir() else 0, entry.name


def lines(folder: Path = PACKAGE, depth: int = 1) -> list[str]:
    """The folder's entries in order, folders after files; folders without code are one line."""
    found = []
    entries = [entry for entry in folder.iterdir() if entry.name != "__pycache__" and entry.suffix != ".pyc"]
    for entry in sorted(entries, key=place_in_order):
        if entry.name == "__init__.py" and folder != PACKAGE:
            continue  # its sentence stands beside the folder
        name = "  " * depth + entry.name + ("/" if entry.is_dir() else "")
        found.append(f"{name:<{COLUMN}}  {says(entry)}")
        if entry.is_dir() and (entry / "__init__.py").exists():
            found += lines(entry, depth + 1)
    return found


def tree() -> str:
    """The whole tree as a block of text."""
    return "\n".join(["src/factordiff/", *lines()])


def page() -> str:
    """The whole page."""
    return f"{HEAD}```text\n{tree()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page())
