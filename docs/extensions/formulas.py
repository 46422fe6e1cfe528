"""Formulas drawn while the site is built: each an SVG in the page, of the color and size of the text around it."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from docutils import nodes
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

UNIT = text_to_path.FONT_SCALE  # of a drawing, in one em
SCALE = 1.08  # a formula's letters are smaller than those of a text of the same size
LETTERS = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}
# What TeX abbreviates and the drawing of formulas does not know; in \frac12 it also wants braces.
SPELLED = {r"\le": r"\leq", r"\ge": r"\geq", r"\bmod": r"\;\mathrm{mod}\;", r"\mathrel{+}=": "+="}
ABBREVIATED = re.compile("|".join(rf"{re.escape(short)}(?![a-zA-Z])" for short in SPELLED))
BARE_FRACTION = re.compile(r"\\frac\s*(\w)\s*(\w)")


@dataclass(frozen=True)
class Drawing:
    """A formula: the outlines of its letters, where each stands, its lines, and the box around all; y goes up."""

    outlines: dict[str, str]
    letters: list[tuple[str, float, float, float]]  # which outline, x, y, size
    lines: str
    box: tuple[float, float, float, float]  # left, low, right, high

    def svg(self, title: str, defined: set[str]) -> str:
        """The formula as SVG. A page has each outline once: those in `defined` are there, new ones are added to it."""
        left, low, right, high = self.box
        width, height, em = right - left, high - low, SCALE / UNIT
        new = [f'<path id="{one}" d="{d}"/>' for one, d in self.outlines.items() if one not in defined]
        defined.update(self.outlines)
        parts = [
            f'<svg class="formula" role="img" viewBox="{left:.1f} {-high:.1f} {width:.1f} {height:.1f}" '
            f'style="width:{width * em:.3f}em;height:{height * em:.3f}em;vertical-align:{low * em:.3f}em">',
            f"<title>{html.escape(title)}</title>",
        ]
        if new:
            parts += ["<defs>", *new, "</defs>"]
        for name, x, y, size in self.letters:
            scale = "" if size == 1 else f" scale({size:.3g})"
            parts.append(f'<use href="#{name}" transform="translate({x:.1f} {-y:.1f}){scale}"/>')
        if self.lines:
            parts.append(f'<path d="{self.lines}"/>')
        return "".join([*parts, "</svg>"])


@cache
def drawn(tex: str) -> Drawing:
    """A formula drawn; a ValueError says what of it cannot be."""
    spelled = ABBREVIATED.sub(lambda found: SPELLED[found[0]], " ".join(tex.split()))
    text = "$" + BARE_FRACTION.sub(r"\\frac{\1}{\2}", spelled) + "$"
    font = FontProperties(size=UNIT, math_fontfamily="cm")
    width, height, descent = text_to_path.get_text_width_height_descent(text, font, ismath=True)
    letters, outlines, lines = text_to_path.get_glyphs_mathtext(font, text)
    names = {one: "f-" + re.sub(r"\W", "-", one) for one in outlines}
    ink = np.array([*text_to_path.get_text_path(font, text, ismath=True)[0], (0, 0)])
    (left, low), (right, high) = ink.min(0), ink.max(0)
    return Drawing(
        {names[one]: _path(*outline) for one, outline in outlines.items()},
        [(names[one], x, y, size) for one, x, y, size in letters],
        "".join(_path(*line) for line in lines),
        # Letters may leave the box they are set in (a slanted one, an accent): nothing is cut off.
        (left, min(-descent, low), max(width, right), max(height - descent, high)),
    )


def _path(points: Any, codes: Any) -> str:
    """An outline as SVG writes it; there, y goes down."""
    parts = []
    for corner, code in Outline(np.asarray(points, dtype=float), codes).iter_segments(simplify=False):
        numbers = corner.reshape(-1, 2) * (1, -1)
        parts.append(LETTERS[code] + " ".join(f"{n:.1f}" for n in numbers.flat) if code in LETTERS else "Z")
    return "".join(parts)


def _svg(translator: Any, node: nodes.math | nodes.math_block) -> str:
    if not hasattr(translator, "outlines_defined"):  # one translator writes one page
        translator.outlines_defined = set()
    tex = node.astext()
    try:
        return drawn(tex).svg(tex, translator.outlines_defined)
    except ValueError as error:
        logger.warning("cannot draw $%s$: %s", tex, str(error).splitlines()[-1], location=node)
        return f"<code>{html.escape(tex)}</code>"


def visit_math(translator: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    translator.body.append(_svg(translator, node))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own; one that is too wide scrolls inside it."""
    translator.body.append(f'<div class="formula-line">{_svg(translator, node)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer("drawn", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
