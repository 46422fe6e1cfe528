"""Grids in a terminal: in the colors it has, side by side if they fit its width, smaller or stacked if not, never cut.

Two forms. Wide: two columns a cell, with a mark on cells that are wrong. Compact: one column a cell, and in color two
rows a line (half blocks); there the wrong cells are a panel of their own.
"""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from factordiff.arc.svg import COLORS, EXPERT_COLORS, HIDDEN
from factordiff.sampling.path import NOBODY

GAP = 2  # columns between two grids
PLAIN_WIDTH = 120  # of lines written to a file or pipe, unless COLUMNS says otherwise
LETTERS = string.ascii_letters + string.digits  # one column each, for 62 experts

Form = Literal["wide", "compact"]


@dataclass(frozen=True)
class Palette:
    """What a label looks like: an exact color, one of the sixteen that every terminal has, a letter where none."""

    exact: tuple[str, ...]
    sixteen: tuple[int, ...]
    letters: str
    written: bool = True  # whether the letter stands on the color too

    def letter(self, label: int) -> str:
        """The sign of a label where there are no colors."""
        return "." if label == NOBODY else self.letters[label % len(self.letters)]

    def color(self, label: int, sixteen: bool) -> Color:
        """The color of a label; rich's own choice among sixteen would show two of ARC's as one."""
        if sixteen:
            return Color.from_ansi(15 if label == NOBODY else self.sixteen[label % len(self.sixteen)])
        return Color.parse(HIDDEN if label == NOBODY else self.exact[label % len(self.exact)])


ARC = Palette(COLORS, (0, 4, 9, 2, 11, 7, 13, 3, 14, 1), "0123456789", written=False)
EXPERTS = Palette(EXPERT_COLORS, (6, 5, 12, 10, 8, 3), LETTERS)  # from the 63rd on letters come again
MARKS = Palette(("#303030", "#ff4136"), (0, 9), ".x")


@dataclass(frozen=True, eq=False)
class Panel:
    """A titled grid of labels; -1 is a cell that nobody decided. `wrong` are the cells to mark."""

    title: str
    labels: np.ndarray
    palette: Palette = ARC
    wrong: np.ndarray | None = None

    def width(self, form: Form) -> int:
        """Columns that it takes."""
        return max(self.labels.shape[1] * (2 if form == "wide" else 1), len(self.title))


def plain_console(stream: Any = None) -> Console:
    """The terminal, or lines of a fixed width where there is none; on that stream, if one is given."""
    console = Console(highlight=False, file=stream)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, file=stream, width=PLAIN_WIDTH)


def colored(console: Console) -> bool:
    """Whether colors can be shown."""
    return console.color_system is not None and not console.no_color


def side_by_side(console: Console, panels: Sequence[Panel]) -> Text:
    """The panels in one line as large as they fit, else in several lines of small ones."""
    form: Form = "wide" if _total(panels, "wide") <= console.width else "compact"
    if form == "compact":
        panels = [part for panel in panels for part in _with_marks(panel)]
    bands: list[list[Panel]] = [[]]
    for panel in panels:
        if bands[-1] and _total([*bands[-1], panel], form) > console.width:
            bands.append([])
        bands[-1].append(panel)
    return Text("\n").join([_band(console, band, form) for band in bands])


def swatch(console: Console, palette: Palette, label: int) -> Text:
    """What a label looks like, for a legend: its letter, on its color where there are colors."""
    if not colored(console):
        return Text(palette.letter(label))
    return Text(f"{palette.letter(label)} ", _style(console, palette, label))


def legend(console: Console, said: Sequence[str]) -> Text:
    """The experts in their order, each as it looks and what is said of it."""
    line = Text()
    for index, words in enumerate(said):
        line.append_text(swatch(console, EXPERTS, index)).append(f" {words}   ")
    return line


def _total(panels: Sequence[Panel], form: Form) -> int:
    return sum(panel.width(form) for panel in panels) + GAP * (len(panels) - 1)


def _with_marks(panel: Panel) -> list[Panel]:
    if panel.wrong is None or not panel.wrong.any():
        return [panel]
    return [panel, Panel("wrong", panel.wrong.astype(np.int64), MARKS)]


def _band(console: Console, panels: Sequence[Panel], form: Form) -> Text:
    """Panels in a line: their titles, then their rows, each filled up to its panel's width."""
    lines_of = _wide_lines if form == "wide" else _compact_lines
    drawn = [lines_of(console, panel) for panel in panels]
    rows = [[Text(panel.title, "dim") for panel in panels]]
    for number in range(max(map(len, drawn))):
        rows.append([lines[number] if number < len(lines) else Text() for lines in drawn])
    return Text("\n").join([_filled(row, [panel.width(form) for panel in panels]) for row in rows])


def _filled(parts: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text(no_wrap=True)
    for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
        line.append_text(part)
        if place + 1 < len(parts):
            line.append(" " * (width - part.cell_len + GAP))
    return line


def _wide_lines(console: Console, panel: Panel) -> list[Text]:
    """A line a row, two columns a cell: its color, and over it a letter where that says more."""
    in_color, ascii_only = colored(console), console.options.ascii_only
    dot, cross = (". ", "xx") if ascii_only else ("· ", "××")
    lines = []
    for row, labels in enumerate(panel.labels.tolist()):
        line = Text(no_wrap=True)
        for column, label in enumerate(labels):
            wrong = panel.wrong is not None and bool(panel.wrong[row, column])
            if not in_color:
                line.append(f"{panel.palette.letter(label)}{'!' if wrong else ' '}")
                continue
            sign = f"{panel.palette.letter(label)} " if panel.palette.written else "  "
            sign = cross if wrong else dot if panel.palette is ARC and label == 0 else sign
            line.append(sign, _style(console, panel.palette, label))
        lines.append(line)
    return lines


def _compact_lines(console: Console, panel: Panel) -> list[Text]:
    """A column a cell: digits, or colors with two rows in a line where the terminal can write half blocks."""
    rows, palette = panel.labels.tolist(), panel.palette
    if not colored(console):
        return [Text("".join(map(palette.letter, row)), no_wrap=True) for row in rows]
    if console.options.ascii_only:
        return [
            Text.assemble(*((" ", _style(console, palette, label)) for label in row), no_wrap=True)
            for row in rows
        ]
    color = _color_of(console, palette)
    lines = []
    for top in range(0, len(rows), 2):
        below = rows[top + 1] if top + 1 < len(rows) else [None] * len(rows[top])
        line = Text(no_wrap=True)
        for upper, lower in zip(rows[top], below, strict=True):
            line.append("▀", Style.from_color(color(upper), None if lower is None else color(lower)))
        lines.append(line)
    return lines


def _color_of(console: Console, palette: Palette) -> Callable[[int], Color]:
    sixteen = console.color_system in ("standard", "windows")
    return lambda label: palette.color(label, sixteen)


def _style(console: Console, palette: Palette, label: int) -> Style:
    """A label's color behind, and black or white, whichever is farther from it, for what is written over it."""
    behind = _color_of(console, palette)(label)
    ink = Color.from_ansi(0 if is_light(behind) else 8 if label == 0 and palette is ARC else 15)
    return Style.from_color(ink, behind)


def is_light(behind: Color) -> bool:
    """Whether black is farther from a color than white."""
    red, green, blue = behind.get_truecolor()
    return 0.299 * red + 0.587 * green + 0.114 * blue > 120
