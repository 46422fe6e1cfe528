"""Pictures of results as PNG bytes: bars, scatters, curves and routing maps. Drawn from numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from factordiff.arc.grid import SIDE
from factordiff.arc.svg import COLORS
from factordiff.pictures import png
from factordiff.report.statistics import Estimate

EXPERT_COLORS = ("#0b6e8f", "#d9822b", "#6a4c93", "#5b8c2a")
MASKED = "#ffffff"
_GRID = ListedColormap([*COLORS, MASKED])


def bars(groups: Sequence[str], series: Mapping[str, Sequence[float]], label: str) -> bytes:
    """Groups of bars, one color per series; values are shares."""
    figure = Figure(figsize=(max(6.0, 0.75 * len(groups) + 2), 3.4))
    axes = figure.subplots()
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
        axes.bar(places, 100 * np.array(values), width, label=name, color=EXPERT_COLORS[number % 4])
    axes.set_xticks(range(len(groups)), list(groups), rotation=40, ha="right", fontsize=8)
    axes.set_ylabel(label)
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series), frameon=False)
    return png(figure)


def scatter(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], ylabel: str) -> bytes:
    """One panel per entry: a point per task, x alone against y composed; above the diagonal composition is better."""
    figure = Figure(figsize=(4.2 * len(pairs), 4.0))
    panels = figure.subplots(1, len(pairs), squeeze=False)[0]
    for number, (axes, (name, (x, y))) in enumerate(zip(panels, pairs.items(), strict=True)):
        axes.plot([0, 100], [0, 100], color="#999", linewidth=0.8)
        axes.scatter(100 * np.array(x), 100 * np.array(y), s=14, alpha=0.7, color=EXPERT_COLORS[number % 4])
        axes.set_xlabel(f"{name}, exact %")
        axes.set_ylabel(ylabel)
    return png(figure)


@dataclass(frozen=True)
class Dot:
    """One line of a dot chart: its name, its figure with an interval, and the kind that gives it its color."""

    name: str
    figure: Estimate
    kind: str


def dots(panels: Mapping[str, Sequence[Dot]], label: str) -> bytes:
    """A panel per entry, one below the other: a dot with its interval for each line, colored by kind."""
    kinds = list(dict.fromkeys(dot.kind for some in panels.values() for dot in some))
    lines = [len(some) for some in panels.values()]
    figure = Figure(figsize=(6.4, 0.27 * sum(lines) + 0.55 * len(lines) + 0.6))
    axes_ = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": lines})[:, 0]
    for axes, (name, some) in zip(axes_, panels.items(), strict=True):
        for place, dot in enumerate(some):
            value, low, high = (100 * x for x in (dot.figure.value, dot.figure.low, dot.figure.high))
            color = EXPERT_COLORS[kinds.index(dot.kind) % 4]
            axes.plot([low, high], [place, place], color=color, linewidth=2)
            axes.plot(value, place, "o", color=color, markersize=5)
            axes.annotate(
                f"{value:.1f}", (1.01, place), xycoords=("axes fraction", "data"), fontsize=8, va="center"
            )
        axes.set_yticks(range(len(some)), [dot.name for dot in some], fontsize=8)
        axes.set_ylim(len(some) - 0.5, -0.5)
        axes.set_title(name, fontsize=9, loc="left")
        axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
        axes.tick_params(axis="x", labelsize=8)
    axes_[-1].set_xlabel(label, fontsize=9)
    figure.tight_layout()
    return png(figure)


def curves(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    xlabel: str,
    ylabel: str,
    log_x: bool = False,
    diagonal: bool = False,
) -> bytes:
    """Lines with points."""
    figure = Figure(figsize=(5.6, 3.6))
    axes = figure.subplots()
    if diagonal:
        axes.plot([0, 1], [0, 1], color="#999", linewidth=0.8)
    for number, (name, (x, y)) in enumerate(lines.items()):
        style = "-" if number < 4 else "--"
        axes.plot(x, y, "o" + style, markersize=4, label=name, color=EXPERT_COLORS[number % 4])
    if log_x:
        axes.set_xscale("log")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.legend(fontsize=8)
    return png(figure)


def map_rows(maps: Sequence[Mapping[str, Any]], experts: Sequence[str]) -> bytes:
    """One row per query: input, each expert alone, who decided, the composed answer, the truth."""
    columns = ["input", *experts, "who decided", "composed", "truth"]
    figure = Figure(figsize=(1.7 * len(columns), 1.85 * len(maps)))
    panels = figure.subplots(len(maps), len(columns), squeeze=False)
    for row, map_ in zip(panels, maps, strict=True):
        _grid(row[0], map_["input"], map_["shapes"][0])
        for axes, answer in zip(row[1:], map_["alone"], strict=False):
            _grid(axes, answer, map_["shapes"][1], map_["truth"])
        _routing(row[-3], map_["decided"], map_["shapes"][1])
        _grid(row[-2], map_["answer"], map_["shapes"][1], map_["truth"])
        _grid(row[-1], map_["truth"], map_["shapes"][1])
        row[0].set_ylabel(f"{map_['task']}\nquery {map_['query']}", fontsize=7)
    for axes, title in zip(panels[0], columns, strict=True):
        axes.set_title(title, fontsize=8)
    for number, name in enumerate(experts):  # an expert's name has its color in the map
        panels[0][1 + number].set_title(f"\u25a0 {name}", fontsize=8, color=EXPERT_COLORS[number % 4])
    return png(figure)


def way_rows(map_: Mapping[str, Any], experts: Sequence[str]) -> bytes:
    """One query step by step: the state above, the routing map of the cells still masked below."""
    frames = map_["frames"]
    figure = Figure(figsize=(1.5 * len(frames), 3.4))
    panels = figure.subplots(2, len(frames), squeeze=False)
    for number, frame in enumerate(frames):
        _grid(panels[0][number], frame["x"], (SIDE, SIDE))
        _routing(panels[1][number], frame["z"], (SIDE, SIDE))
        revealed = sum(value < 10 for value in frame["x"])
        panels[0][number].set_title(f"{revealed} of {len(frame['x'])}", fontsize=8)
    panels[0][0].set_ylabel("state", fontsize=8)
    panels[1][0].set_ylabel("routing map", fontsize=8)
    for number, name in enumerate(experts):
        figure.text(0.15 + 0.3 * number, 0.02, f"\u25a0 {name}", color=EXPERT_COLORS[number % 4], fontsize=9)
    return png(figure)


def state_row(states: Sequence[Sequence[int]], titles: Sequence[str]) -> bytes:
    """Grids in a row: the forward process, for one."""
    figure = Figure(figsize=(1.5 * len(states), 1.8))
    for axes, state, title in zip(
        figure.subplots(1, len(states), squeeze=False)[0], states, titles, strict=True
    ):
        _grid(axes, state, (SIDE, SIDE))
        axes.set_title(title, fontsize=8)
    return png(figure)


def _grid(
    axes: Axes, canvas: Sequence[int], shape: Sequence[int], truth: Sequence[int] | None = None
) -> None:
    height, width = shape
    axes.imshow(np.array(canvas).reshape(SIDE, SIDE), cmap=_GRID, vmin=0, vmax=10)
    if truth is not None:
        for cell, (one, other) in enumerate(zip(canvas, truth, strict=True)):
            if one != other:
                axes.plot(cell % SIDE, cell // SIDE, "x", color="white", markersize=4)
    _frame(axes, height, width)


def _routing(axes: Axes, z: Sequence[int], shape: Sequence[int]) -> None:
    colors = ListedColormap(["#eeeeee", *EXPERT_COLORS])
    axes.imshow(np.array(z).reshape(SIDE, SIDE) + 1, cmap=colors, vmin=0, vmax=len(EXPERT_COLORS))
    _frame(axes, *shape)


def _frame(axes: Axes, height: int, width: int) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.plot(
        [-0.5, width - 0.5, width - 0.5], [height - 0.5, height - 0.5, -0.5], color="#888", linewidth=0.8
    )
