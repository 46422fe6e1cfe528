"""Grids as PNG images in ARC's colors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from factordiff.arc.grid import Grid
from factordiff.arc.svg import COLORS
from factordiff.errors import InvalidInput

PALETTE = tuple(map(ImageColor.getrgb, COLORS))
PAPER = (255, 255, 255)
INK = (40, 40, 40)
LINE = (85, 85, 85)
GAP = 12
TITLE_HEIGHT, FONT = 20, 13

TitledPair = tuple[str, Grid, Grid]


def draw_grid(grid: Grid, cell: int = 16) -> Image.Image:
    """The grid with a thin line between its cells, `cell` pixels each."""
    if cell < 3:
        raise InvalidInput(f"cell: expected at least 3 pixels, got {cell}")
    height, width = grid.shape
    pixels = np.array(PALETTE, dtype=np.uint8)[grid].repeat(cell, axis=0).repeat(cell, axis=1)
    pixels[::cell] = LINE
    pixels[:, ::cell] = LINE
    framed = np.full((height * cell + 1, width * cell + 1, 3), LINE, dtype=np.uint8)
    framed[:-1, :-1] = pixels
    return Image.fromarray(framed)


def draw_pairs(title: str, pairs: Sequence[tuple[Grid, Grid]], cell: int = 16) -> Image.Image:
    """Pairs side by side, each input above its output, under a title."""
    columns = [[draw_grid(grid, cell) for grid in pair] for pair in pairs]
    top = max(column[0].height for column in columns)
    bottom = max(column[1].height for column in columns)
    widths = [max(image.width for image in column) for column in columns]
    picture = Image.new(
        "RGB", (max(sum(widths) + GAP * (len(widths) + 1), 90), TITLE_HEIGHT + top + bottom + 3 * GAP), PAPER
    )
    write_text(picture, title, GAP, GAP // 2)
    left = GAP
    for column, width in zip(columns, widths, strict=True):
        picture.paste(column[0], (left, TITLE_HEIGHT + GAP))
        picture.paste(column[1], (left, TITLE_HEIGHT + 2 * GAP + top))
        left += width + GAP
    return picture


def contact_sheets(
    pairs: Sequence[TitledPair], columns: int = 6, rows: int = 4, cell: int = 12
) -> list[Image.Image]:
    """Pages of titled pairs, each input above its output: 120 tasks make five pages, as in the paper.

    Paper: appendix "Training Task Samples".
    """
    side = 10 * cell + 1
    step_x, step_y = side + 2 * GAP, TITLE_HEIGHT + 2 * side + 3 * GAP
    pages = []
    for start in range(0, len(pairs), columns * rows):
        page = Image.new("RGB", (columns * step_x + GAP, rows * step_y + GAP), PAPER)
        for place, (title, given, answer) in enumerate(pairs[start : start + columns * rows]):
            left, top = GAP + place % columns * step_x, GAP + place // columns * step_y
            write_text(page, title, left, top)
            for row, grid in enumerate((given, answer)):
                page.paste(draw_grid(grid, cell), (left, top + TITLE_HEIGHT + row * (side + GAP)))
        pages.append(page)
    return pages


def write_text(picture: Image.Image, text: str, left: int, top: int, size: int = FONT) -> None:
    """A line of text in a picture."""
    ImageDraw.Draw(picture).text((left, top), text, fill=INK, font=ImageFont.load_default(size=size))
