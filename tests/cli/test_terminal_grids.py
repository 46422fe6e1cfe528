"""What is drawn is the grid: read back from the terminal, at every width, with and without colors, and never cut."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from rich.color import ColorSystem

from factordiff.cli.terminal_grids import ARC, EXPERTS, MARKS, Palette, Panel, plain_console, side_by_side
from factordiff.sampling.path import NOBODY
from tests.terminal_screen import Place, console, screen, written

WIDTHS, COLORS = (60, 80, 120), ("truecolor", "256", "standard", None)
ALL = list(product(WIDTHS, COLORS))


def grid(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 10, (rows, columns))


def five() -> list[Panel]:
    """The panels of an answer on the largest canvas, three cells of attempt 1 wrong."""
    truth = grid(10, 10, 1)
    attempt = truth.copy()
    for row, column in ((0, 0), (4, 7), (9, 9)):
        attempt[row, column] = (attempt[row, column] + 3) % 10
    who = np.random.default_rng(2).integers(-1, 2, (10, 10))
    return [
        Panel("input", grid(9, 8)),
        Panel("attempt 1", attempt, wrong=attempt != truth),
        Panel("decided by", who, EXPERTS),
        Panel("attempt 2", truth),
        Panel("truth", truth),
    ]


def drawn(panels: list[Panel], width: int, colors: str | None, encoding: str = "utf-8") -> list[list[Place]]:
    on = console(width, colors, encoding)
    on.print(side_by_side(on, panels), soft_wrap=True)
    return screen(written(on))


def code(palette: Palette, label: int, colors: str) -> tuple[int, ...]:
    """The numbers that a terminal is told for a label's color."""
    if colors == "standard":
        return (15,) if label == NOBODY else (palette.sixteen[label],)
    chosen = palette.color(label, sixteen=False)
    if colors == "256":
        number = chosen.downgrade(ColorSystem.EIGHT_BIT).number
        assert number is not None
        return (number,)
    return tuple(chosen.get_truecolor())


def titles(lines: list[list[Place]]) -> list[tuple[int, int, str]]:
    """Every title as (line, column, text): the lines that begin with letters of the alphabet."""
    found = []
    for number, line in enumerate(lines):
        text = "".join(place.letter for place in line)
        for name in ("input", "attempt 1", "decided by", "attempt 2", "truth", "wrong"):
            start = text.find(name)
            if start >= 0:
                found.append((number, start, name))
    return found


def read(
    lines: list[list[Place]], top: int, left: int, panel: Panel, colors: str | None, wide: bool
) -> np.ndarray:
    """The labels that stand below a title."""
    palette = panel.palette
    labels = [NOBODY, *range(len(palette.exact) if palette is not EXPERTS else 2)]
    meant = {code(palette, label, colors) if colors else palette.letter(label): label for label in labels}
    height, width = panel.labels.shape
    found = np.full((height, width), 99)
    for row, column in product(range(height), range(width)):
        if wide or colors is None:
            place = lines[top + 1 + row][left + column * (2 if wide else 1)]
            found[row, column] = meant[place.behind if colors else place.letter]  # type: ignore[index]
        else:
            place = lines[top + 1 + row // 2][left + column]
            assert place.letter == "▀"
            found[row, column] = meant[place.behind if row % 2 else place.ink]  # type: ignore[index]
    return found


@pytest.mark.parametrize(("width", "colors"), ALL)
def test_every_cell_of_every_grid_is_on_the_screen(width: int, colors: str | None) -> None:
    panels = five()
    lines = drawn(panels, width, colors)
    assert max(map(len, lines)) <= width
    places = {name: (line, column) for line, column, name in titles(lines)}
    wide = width == 120  # five of 20 columns and four gaps
    for panel in panels:
        found = read(lines, *places[panel.title], panel, colors, wide)
        assert found.tolist() == panel.labels.tolist(), panel.title


@pytest.mark.parametrize(("width", "colors"), ALL)
def test_wrong_cells_are_marked_and_no_others(width: int, colors: str | None) -> None:
    panels = five()
    wrong = panels[1].wrong
    assert wrong is not None
    lines = drawn(panels, width, colors)
    places = {name: (line, column) for line, column, name in titles(lines)}
    if width == 120:
        top, left = places["attempt 1"]
        sign = "×" if colors else "!"
        marked = [
            [lines[top + 1 + row][left + 2 * column + 1].letter == sign for column in range(10)]
            for row in range(10)
        ]
        assert "wrong" not in places
    else:
        marks = Panel("wrong", wrong.astype(np.int64), MARKS)
        marked = read(lines, *places["wrong"], marks, colors, wide=False).astype(bool).tolist()
    assert marked == wrong.tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_an_ascii_terminal_gets_ascii(width: int) -> None:
    for colors in COLORS:
        lines = drawn(five(), width, colors, encoding="ascii")
        assert all(place.letter.isascii() for line in lines for place in line)
        assert max(map(len, lines)) <= width


def test_a_narrow_window_stacks_the_grids() -> None:
    lines = drawn(five(), 30, None)
    assert max(map(len, lines)) <= 30
    assert len({line for line, *_ in titles(lines)}) == 3  # bands of two
    for panel in five():
        rows = ["".join(panel.palette.letter(label) for label in row) for row in panel.labels.tolist()]
        text = ["".join(place.letter for place in line) for line in lines]
        assert all(any(row in line for line in text) for row in rows)


def test_the_largest_grid_of_arc_fits_sixty_columns() -> None:
    lines = drawn([Panel("input", grid(30, 30)), Panel("truth", grid(30, 30, 1))], 60, "truecolor")
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("palette", [ARC, EXPERTS, MARKS])
def test_no_two_labels_look_alike(palette: Palette) -> None:
    labels = [*range(len(palette.exact)), NOBODY]
    for sixteen in (False, True):
        colors = [palette.color(label, sixteen) for label in labels]
        assert len(set(colors)) == len(colors)
    eight_bit = [palette.color(label, sixteen=False).downgrade(ColorSystem.EIGHT_BIT) for label in labels]
    assert len(set(eight_bit)) == len(eight_bit)
    assert len({palette.letter(label) for label in labels}) == len(labels) - (palette is MARKS)


def test_a_pipe_has_a_fixed_width_unless_columns_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert plain_console().width == 120
    monkeypatch.setenv("COLUMNS", "72")
    assert plain_console().width == 72
