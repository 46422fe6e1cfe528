"""The painters' pictures in a terminal: as they fill, and what each method makes of them."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

from factordiff.cli.terminal_grids import EXPERTS, Palette, Panel, side_by_side
from factordiff.toy.painting import HEIGHT, WIDTH, Painted

# Night, frame, apple, leaf, table.
PAINTS = Palette(
    ("#1d2b53", "#8b5a2b", "#e0243c", "#3fae49", "#d9a441"), (4, 3, 9, 2, 11), " #@%=", written=False
)


def scene(console: Console, title: str, cells: list[int], speakers: list[int]) -> Text:
    """The picture on the left, the routing map on the right."""
    return side_by_side(console, [_panel(title, cells, PAINTS), _panel("", speakers, EXPERTS)])


def gallery_picture(console: Console, painted: Painted) -> Text:
    """One method's picture with its name and how much of it is right."""
    drawn = side_by_side(console, [_panel(painted.method, painted.x_0.tolist(), PAINTS)])
    return Text.assemble(drawn, f"\n{painted.right:.1f} of {HEIGHT * WIDTH}\n")


def _panel(title: str, cells: list[int], palette: Palette) -> Panel:
    return Panel(title, np.reshape(cells, (HEIGHT, WIDTH)), palette)
