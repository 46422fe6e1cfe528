"""Grids and routing maps as SVG text: what a notebook shows in place of numbers.

Pure strings with the size written on them, no style sheet and no script, so they look the same wherever they are put.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np
from jaxtyping import Shaped

from factordiff.arc.grid import Grid

# ARC's colors: black (the background), blue, red, green, yellow, grey, magenta, orange, light blue, maroon.
COLORS = (
    "#000000", "#0074d9", "#ff4136", "#2ecc40", "#ffdc00", "#aaaaaa", "#f012be", "#ff851b", "#7fdbff", "#870c25",
)  # fmt: skip
# In the order of the experts: those of the pages (page.css), none of which is a color of a grid.
EXPERT_COLORS = ("#2ba3a3", "#5f45c9", "#8a6a3f", "#c9b8f5", "#556b2f", "#f2c9b0")
HIDDEN = "#e4e4e4"  # a masked cell, or one that nobody decided
LINE = "#555555"
INK = "#808080"  # reads on light and on dark pages
CELL, GAP, TITLE = 16, 16, 18

Labels = Shaped[np.ndarray, "row column"]


class Svg(str):
    """SVG text that a notebook draws."""

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"Svg({len(self)} characters)"


def expert_color(index: int) -> str:
    """The color that stands for an expert in every map."""
    return EXPERT_COLORS[index % len(EXPERT_COLORS)]


def grid_svg(grid: Grid, cell: int = CELL, wrong: Labels | None = None) -> Svg:
    """One grid in ARC's colors; `wrong` cells are crossed out.

    >>> grid_svg(np.array([[0, 3]], dtype=np.uint8)).count("<rect")
    3
    """
    body = _cells(grid, COLORS, cell) + ("" if wrong is None else _crosses(wrong, cell))
    return _document([("", body, *_size(grid, cell))])


def routing_svg(labels: Labels, experts: Sequence[str], cell: int = CELL, title: str = "") -> Svg:
    """Who decided each cell, with a legend; -1 is a cell that nobody decided (it was given)."""
    height, width = labels.shape
    colors = [expert_color(index) for index in range(len(experts))]
    legend, top = [], height * cell + GAP
    for index, name in enumerate(experts):
        share = int((labels == index).sum())
        legend.append(
            f'<rect x="0" y="{top}" width="10" height="10" fill="{colors[index]}"/>'
            f'<text x="16" y="{top + 9}" font-size="11" font-family="sans-serif" fill="{INK}">'
            f"{escape(name)}: {share}</text>"
        )
        top += 16
    longest = max(map(len, experts), default=0)
    body = _cells(labels, colors, cell) + "".join(legend)
    return _document([(title, body, max(width * cell, 16 + 7 * (longest + 6)), top)])


def row_svg(panels: Sequence[tuple[str, Grid]], cell: int = CELL) -> Svg:
    """Titled grids side by side."""
    return _document([(title, _cells(grid, COLORS, cell), *_size(grid, cell)) for title, grid in panels])


def column_svg(drawings: Sequence[Svg]) -> Svg:
    """Drawings one below the other."""
    sizes = [tuple(map(int, re.findall(r'(?:width|height)="(\d+)"', drawing)[:2])) for drawing in drawings]
    parts, top = [], 0
    for drawing, (_, height) in zip(drawings, sizes, strict=True):
        parts.append(f'<g transform="translate(0,{top})">{drawing}</g>')
        top += height + GAP
    width, height = max((width for width, _ in sizes), default=0), max(top - GAP, 0)
    return _root(width, height, "".join(parts))


def _size(grid: np.ndarray, cell: int) -> tuple[int, int]:
    return grid.shape[1] * cell, grid.shape[0] * cell


def _cells(labels: np.ndarray, colors: Sequence[str], cell: int) -> str:
    """A rectangle per cell, and one around them all."""
    height, width = labels.shape
    squares = [
        f'<rect x="{column * cell}" y="{row * cell}" width="{cell}" height="{cell}" '
        f'fill="{colors[label] if 0 <= label < len(colors) else HIDDEN}" stroke="{LINE}" stroke-width="0.5"/>'
        for row, line in enumerate(labels.tolist())
        for column, label in enumerate(line)
    ]
    frame = f'<rect width="{width * cell}" height="{height * cell}" fill="none" stroke="{LINE}"/>'
    return "".join(squares) + frame


def _crosses(wrong: Labels, cell: int) -> str:
    """A white cross with a dark edge over every marked cell: seen on any color."""
    paths = "".join(
        f"M{column * cell + 3} {row * cell + 3}l{cell - 6} {cell - 6}m0 {6 - cell}l{6 - cell} {cell - 6}"
        for row, column in np.argwhere(wrong).tolist()
    )
    strokes = (("#000000", 4), ("#ffffff", 2))
    return "".join(
        f'<path d="{paths}" fill="none" stroke="{color}" stroke-width="{width}"/>' for color, width in strokes
    )


def _document(panels: Sequence[tuple[str, str, int, int]]) -> Svg:
    """Panels of (title, body, width, height) in a row."""
    titled = any(title for title, _, _, _ in panels)
    top = TITLE if titled else 1
    parts, left = [], 1
    for title, body, width, _ in panels:
        if title:
            parts.append(
                f'<text x="{left}" y="12" font-size="12" font-family="sans-serif" fill="{INK}">{escape(title)}</text>'
            )
        parts.append(f'<g transform="translate({left},{top})">{body}</g>')
        left += max(width, 7 * len(title)) + GAP
    width, height = left - GAP + 1, top + max((panel[3] for panel in panels), default=0) + 1
    return _root(width, height, "".join(parts))


def _root(width: int, height: int, body: str) -> Svg:
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{body}</svg>'
    )
