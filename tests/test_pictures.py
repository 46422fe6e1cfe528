"""Figures are small files that look as they were drawn."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from factordiff.arc.drawing import PALETTE
from factordiff.pictures import png


def drawn() -> Figure:
    figure = Figure(figsize=(4, 2), dpi=110)
    left, right = figure.subplots(1, 2)
    left.imshow(np.array(PALETTE, dtype=np.uint8)[:, None])
    left.set_axis_off()
    right.plot(np.sin(np.arange(100) / 9), label="a curve")
    right.legend()
    return figure


def test_a_picture_of_few_colors_is_the_picture() -> None:
    small, large = png(drawn(), tight=False), io.BytesIO()
    drawn().savefig(large, format="png", dpi=110)
    assert len(small) < 0.6 * len(large.getvalue())
    few, many = (
        np.asarray(Image.open(file).convert("RGB"), dtype=int) for file in (io.BytesIO(small), large)
    )
    assert few.shape == many.shape
    off = np.abs(few - many).max(-1)
    assert np.quantile(off, 0.99) <= 8, "hardly a pixel has another color"
    for color in PALETTE:  # the large areas above all
        there = (many == color).all(-1)
        assert there.sum() > 100
        assert off[there].max() <= 8


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert png(drawn()) == png(drawn())
    cut, whole = (Image.open(io.BytesIO(png(drawn(), tight))) for tight in (True, False))
    assert cut.width < whole.width, "the margin is cut off"
