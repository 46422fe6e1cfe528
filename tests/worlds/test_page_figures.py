"""Figures of docs/worlds.md outside the large tables: each is one that a command wrote down."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from factordiff.worlds.antibody.world import RATES, WHERE, rate_name
from factordiff.worlds.catalogue import compare_world, world

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"


def saved(name: str, split: str) -> dict[str, Any]:
    """What `factordiff compare` wrote beside its records."""
    content: dict[str, Any] = json.loads((PAGE.parent / "worlds" / name / split / "table.json").read_text())
    return content


def rows_between(first: str, last: str) -> list[list[str]]:
    """The cells of a table's rows, the heading first."""
    part = PAGE.read_text().split(first)[1].split(last)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def percent(figures: dict[str, Any], name: str) -> str:
    low, high = figures["intervals"][name]
    return f"{100 * figures[name]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def test_puzzles_that_were_solved() -> None:
    content = saved("sudoku", "test")
    assert content["about"]["data"] == world("sudoku").data()
    measured = content["rows"]
    heading, *rows = rows_between("<!-- sudoku -->", "<!-- /sudoku -->")
    columns = [cell.removesuffix(", %") for cell in heading[1:-2]]
    assert [row[0].split(" (")[0].strip("`") for row in rows] == list(measured)
    for row, figures in zip(rows, measured.values(), strict=True):
        gain = "—"
        if "minus_best_scalar" in figures:
            value, low, high = figures["minus_best_scalar"]
            gain = f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        assert row[1:] == [*(percent(figures, one) for one in columns), gain, f"{figures['passes']:,.0f}"]


def test_puzzles_in_short() -> None:
    measured = saved("sudoku", "test")["rows"]
    heading, *rows = rows_between("## Sudoku", "- Puzzles are made")
    assert len(rows) >= 5
    for row in rows:
        label = re.findall(r"`([^`]+)`", row[0])[:1] or [row[0]]
        figures = measured[label[0]]
        assert row[1] == f"{100 * figures['solved']:.1f}", label
        assert row[2:] == [f"{100 * figures[level]:.0f}" for level in heading[2:]], label


def test_differences_between_antibody_rows() -> None:
    ((base, differences),) = saved("antibody", "test")["against"].items()
    heading, *rows = rows_between("<summary>Paired differences", "</details>")
    assert heading[0] == f"minus `{base}`"
    assert len(rows) >= 6
    for row in rows:
        of_row = differences[row[0].strip("`")]
        for name, cell in zip(heading[1:], row[1:], strict=True):
            value, low, high = of_row[name if name == "nats" else f"nats {name}"]
            assert cell == f"{value:+.3f} [{low:+.3f}, {high:+.3f}]", (row[0], name)


def test_antibodies_by_region_at_every_rate() -> None:
    measured = saved("antibody", "test")["rows"]
    heading, *rows = rows_between("<summary>By region at every rate", "</details>")
    crossed = [f"{where} {rate_name(rate)}" for where in WHERE for rate in RATES]
    assert heading[1:] == crossed
    assert len(rows) >= 5
    for row in rows:
        figures = measured[row[0].strip("`")]
        for name, cell in zip(crossed, row[1:], strict=True):
            assert cell == f"{figures[f'nats {name}']:.3f}; {100 * figures[f'right {name}']:.1f}"


QUARTERS = (  # the rows of the short table of mosaics, in its order
    ("fitted:mixture", "fitted:product"),
    ("mosaic-1",),
    ("union",),
    ("routing", "fitted:routing"),
    ("fitted:learned", "fitted:learned[kind=neighbourhood]"),
    ("fitted:evidence",),
    ("routing[factors=block:10x10]",),
    ("demonstrations",),
    ("told",),
)


def test_mosaics_in_short() -> None:
    measured = saved("arc-mosaic", "held")["rows"]
    _, *rows = rows_between("## Mosaics", "- **One number per expert")
    for row, labels in zip(rows, QUARTERS, strict=True):
        assert re.findall(r"[\d.]+", row[1]) == [f"{100 * measured[one]['quarters']:.1f}" for one in labels]


@pytest.mark.slow
def test_what_is_fitted_in_a_toy() -> None:
    (said,) = re.findall(
        r"the best mixture is ([\d.]+) away, the best product ([\d.]+), the best evidence ([\d.]+), the shared router "
        r"([\d.]+); the neighbourhood router",
        " ".join(PAGE.read_text().split()),
    )
    labels = ("fitted:mixture", "fitted:product", "fitted:evidence", "fitted:learned")
    table = compare_world(world("toy-halves-sure"), ",".join((*labels, "fitted:learned[kind=neighbourhood]")))
    found = [table[label].value(table.main) for label in labels]
    assert [f"{one:.3f}" for one in found[:3]] == list(said[:3])
    assert found[3] == pytest.approx(
        float(said[3]), abs=0.01
    )  # a fit by gradients: processors differ a little
    assert table["fitted:learned[kind=neighbourhood]"].value(table.main) < 1e-4
