"""A screen that reads what was written to a terminal: each place's character and its two colors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import StringIO

from rich.console import Console
from rich.style import Style

CODE = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])")
Color = tuple[int, ...] | None  # (n,) of sixteen or of 256, (red, green, blue), None for the terminal's own


@dataclass(frozen=True)
class Place:
    """One column of one line."""

    letter: str
    ink: Color
    behind: Color


def console(width: int, colors: str | None, encoding: str = "utf-8") -> Console:
    """A terminal of so many columns: `truecolor`, `256`, `standard` (sixteen) or none."""
    Style._add.cache_clear()  # rich keeps the codes of the first terminal that a style was written to

    class Written(StringIO):
        @property
        def encoding(self) -> str:
            return encoding

    return Console(
        file=Written(),
        width=width,
        force_terminal=colors is not None,
        color_system=colors,  # type: ignore[arg-type]
        no_color=colors is None,
        highlight=False,
    )


def written(on: Console) -> str:
    """Everything that was written."""
    file = on.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def screen(text: str) -> list[list[Place]]:
    """The lines as places, after all that moved the cursor up or erased a line."""
    lines: list[list[Place]] = [[]]
    ink: Color = None
    behind: Color = None
    row = column = position = 0
    while position < len(text):
        code = CODE.match(text, position)
        if code:
            position = code.end()
            if code[2] == "m":
                ink, behind = _after(code[1], ink, behind)
            elif code[2] == "A":
                row -= int(code[1] or 1)
            elif code[2] == "K":
                lines[row] = []
            continue
        if text[position] == "\n":
            row, column = row + 1, 0
            lines += [[]] * (row == len(lines))
        elif text[position] == "\r":
            column = 0
        else:
            line = lines[row]
            line += [Place(" ", None, None)] * (column + 1 - len(line))
            line[column] = Place(text[position], ink, behind)
            column += 1
        position += 1
    return lines


def _after(code: str, ink: Color, behind: Color) -> tuple[Color, Color]:
    numbers = [int(part or 0) for part in code.split(";")]
    while numbers:
        first = numbers.pop(0)
        if first == 0:
            ink = behind = None
        elif first in (38, 48):
            kind = numbers.pop(0)
            count = 3 if kind == 2 else 1
            color = tuple(numbers[:count])
            del numbers[:count]
            ink, behind = (color, behind) if first == 38 else (ink, color)
        elif 30 <= first <= 37:
            ink = (first - 30,)
        elif 90 <= first <= 97:
            ink = (first - 82,)
        elif 40 <= first <= 47:
            behind = (first - 40,)
        elif 100 <= first <= 107:
            behind = (first - 92,)
    return ink, behind
