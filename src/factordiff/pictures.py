"""Figures as small files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHADES = 128  # lines, bars and grids need no more, and the file is a third as long


class Png(bytes):
    """A PNG file in memory that a notebook draws."""

    def _repr_png_(self) -> bytes:
        return bytes(self)

    def __repr__(self) -> str:
        return f"Png({len(self)} bytes)"


def png(figure: Figure, tight: bool = True) -> Png:
    """A matplotlib figure as a PNG of few shades, the same bytes each time; `tight` cuts the margin off."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110, bbox_inches="tight" if tight else None)
    with Image.open(drawn) as picture:
        few = picture.convert("RGB").quantize(SHADES, dither=Image.Dither.NONE)
        few.save(small, format="PNG", optimize=True)
    return Png(small.getvalue())
