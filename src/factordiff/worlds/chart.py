"""A comparison as a picture: every row's main figure with its interval, best fitted number and oracle as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from factordiff.pictures import png
from factordiff.worlds.comparison import Comparison
from factordiff.worlds.methods import ALONE, BOUND, FACTOR, FITTED, SAMPLE, SCALAR

COLORS = {ALONE: "#999999", SCALAR: "#d9822b", SAMPLE: "#6a4c93", FACTOR: "#0b6e8f", BOUND: "#5b8c2a"}
MARKERS = "osD"  # of ten methods each: there are ten colors
MOST_ALONE = 6  # experts that have a bar of their own


def bars(table: Comparison) -> bytes:
    """One bar per row, colored by its family."""
    main = table.main
    scale = 100.0 if main.unit == "%" else 1.0
    alone = [row for row in table.rows if row.family == ALONE]
    shown = [row for row in table.rows if row.family != ALONE or len(alone) <= MOST_ALONE]
    figure = Figure(figsize=(7.2, 0.3 * len(shown) + 1.3))
    axes = figure.subplots()
    for place, row in enumerate(shown):
        end = scale * row.value(main)
        axes.barh(place, end, color=COLORS.get(row.family, COLORS[FACTOR]), height=0.72)
        if not table.exact:
            found = row.estimate(main)
            if np.isfinite([found.low, found.high]).all():
                axes.plot(
                    [scale * found.low, scale * found.high], [place, place], color="black", linewidth=1.2
                )
                end = max(end, scale * found.high)
        axes.text(end, place, f" {main.shown(row.value(main))}", va="center", fontsize=7)
    for line, style in ((table.base, ":"), (table.top, "--")):
        if line is not None:
            axes.axvline(scale * line.value(main), color="#444", linestyle=style, linewidth=0.8)
    axes.set_yticks(range(len(shown)), [row.label for row in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(
        f"{main.name}, {main.unit}{' (less is better)' if main.lower_is_better else ''}", fontsize=8
    )
    axes.set_title(table.title, fontsize=9, loc="left")
    for family in dict.fromkeys(row.family for row in shown):
        axes.barh([0], [0], color=COLORS.get(family, COLORS[FACTOR]), label=family)
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return png(figure)


def shares(worlds: Mapping[str, Mapping[str, float]], methods: Sequence[str]) -> bytes:
    """World by world, how far each method is on the way from the best fitted number per expert to the oracle."""
    figure = Figure(figsize=(7.2, 0.62 * len(worlds) + 1.4))
    axes = figure.subplots()
    # A method has a color, a shape and a height of its own in every world; what is fitted of it is filled.
    names = list(dict.fromkeys(method.removeprefix(FITTED) for method in methods))
    for method in methods:
        fitted, number = method.startswith(FITTED), names.index(method.removeprefix(FITTED))
        color, marker = f"C{number % 10}", MARKERS[number // 10 % len(MARKERS)]
        style: dict[str, Any] = {
            "color": color,
            "markerfacecolor": color if fitted else "white",
            "markersize": 5.5,
        }
        height = 0.7 * (number / max(len(names) - 1, 1) - 0.5)
        for place, of_methods in enumerate(worlds.values()):
            if method in of_methods:
                axes.plot(100 * max(of_methods[method], -1.0), place + height, marker, **style)
        axes.plot([], [], marker, label=method, **style)
    for place in range(1, len(worlds)):
        axes.axhline(place - 0.5, color="#ddd", linewidth=0.8)
    axes.axvline(0, color="#444", linestyle=":", linewidth=0.8)
    axes.axvline(100, color="#444", linestyle="--", linewidth=0.8)
    axes.set_yticks(range(len(worlds)), list(worlds), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(
        "% of the way from the best fitted number per expert to the oracle (below -100: at -100)", fontsize=8
    )
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return png(figure)
