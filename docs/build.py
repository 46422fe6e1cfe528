"""The README and the docs as pages of HTML, formulas drawn; nothing is asked of any other machine.

python docs/build.py [FOLDER]     writes index.html and the rest into FOLDER (build/docs)
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import shutil
import sys
from pathlib import Path

import markdown
from matplotlib import mathtext
from matplotlib.font_manager import FontProperties

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = r"^```.*?^```$|`[^`\n]*`"
FORMULA = re.compile(rf"({CODE})|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r'(href|src)="([^"#:]+)(#[^"]*)?"')
# What TeX abbreviates and the drawing of formulas does not know.
SPELLED = {r"\le ": r"\leq ", r"\ge ": r"\geq "}
STYLE = """
:root { color-scheme: light; font: 16px/1.6 system-ui, sans-serif; }
body { max-width: 54rem; margin: 0 auto; padding: 1rem 1.2rem 4rem; color: #1c1f26; }
nav { font-size: .9rem; display: flex; flex-wrap: wrap; gap: .3rem 1rem; padding-bottom: .6rem; }
nav { border-bottom: 1px solid #ddd; }
pre { background: #f5f4f0; padding: .8rem 1rem; overflow-x: auto; border-radius: 8px; }
pre { font-size: .85rem; line-height: 1.4; }
code { background: #f5f4f0; padding: 0 .2em; border-radius: 4px; }
pre code { padding: 0; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid #ddd; padding: .25rem .6rem; text-align: left; vertical-align: top; }
img { max-width: 100%; } a { color: #0b7d70; }
.formula { display: block; margin: 1rem auto; overflow-x: auto; }
"""


def build(out: Path) -> list[Path]:
    """Write every page; returns their files."""
    shutil.rmtree(out, ignore_errors=True)
    return [_write(page, out) for page in PAGES]


def place_of(page: Path, out: Path) -> Path:
    """Where a page goes: the README is the first one."""
    if page == ROOT / "README.md":
        return out / "index.html"
    return (out / page.relative_to(ROOT)).with_suffix(".html")


def _write(page: Path, out: Path) -> Path:
    target = place_of(page, out)
    target.parent.mkdir(parents=True, exist_ok=True)
    drawn: list[
        str
    ] = []  # formulas wait here while markdown, which would see emphasis in them, does its work

    def set_aside(found: re.Match[str]) -> str:
        code, display, inline = found.groups()
        if code is not None:
            return code
        try:
            drawn.append(_formula(display or inline, display is not None, target, out))
        except ValueError as error:
            raise SystemExit(
                f"{page}: cannot draw ${display or inline}$: {str(error).splitlines()[-1]}"
            ) from error
        return f"FORMULA{len(drawn) - 1}END"

    text = FORMULA.sub(set_aside, page.read_text())
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "toc", "sane_lists"])
    body = re.sub(r"FORMULA(\d+)END", lambda found: drawn[int(found[1])], body)
    body = LINK.sub(lambda found: _link(found, page, out), body)
    title = html.escape(re.sub(r"[#`]", "", page.read_text().splitlines()[0]).strip())
    target.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>{_navigation(target, out)}\n{body}\n</body></html>\n"
    )
    return target


def _formula(text: str, display: bool, target: Path, out: Path) -> str:
    """An image of a formula, on the line of the text around it."""
    for short, long in SPELLED.items():
        text = text.replace(short, long)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = out / "formulas" / f"{name}.svg"
    file.parent.mkdir(parents=True, exist_ok=True)
    depth = mathtext.math_to_image(
        f"${' '.join(text.split())}$", file, FontProperties(size=13, math_fontfamily="cm"), format="svg"
    )
    where = 'class="formula"' if display else f'style="vertical-align: {-depth:.1f}pt"'
    return f'<img {where} alt="{html.escape(text)}" src="{os.path.relpath(file, target.parent)}">'


def _link(found: re.Match[str], page: Path, out: Path) -> str:
    """A link of the page as a link of the built one, which takes along what it leads to."""
    kind, place, anchor = found.groups()
    target = place_of(page, out)
    if (target.parent / place).resolve().is_relative_to((out / "formulas").resolve()):
        return found[0]
    meant = (page.parent / place).resolve()
    if meant in PAGES:
        meant = place_of(meant, out)
    elif meant.is_file() and meant.is_relative_to(ROOT):  # a picture, or the code that a page speaks of
        copy = out / meant.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(meant, copy)
        meant = copy
    else:
        raise SystemExit(f"{page}: links to {place}, which is not there")
    return f'{kind}="{os.path.relpath(meant, target.parent)}{anchor or ""}"'


def _navigation(target: Path, out: Path) -> str:
    links = []
    for page in PAGES:
        name = (
            "FactorDiff" if page.name == "README.md" and page.parent == ROOT else page.stem.replace("-", " ")
        )
        name = "results" if name == "README" else name
        links.append(
            f'<a href="{os.path.relpath(place_of(page, out), target.parent)}">{html.escape(name)}</a>'
        )
    return f"<nav>{' '.join(links)}</nav>"


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs")
