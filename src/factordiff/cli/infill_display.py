"""How a filled text looks in a terminal: each character in the color of who decided it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.color import Color
from rich.console import Console
from rich.status import Status
from rich.style import Style
from rich.text import Text
from torch import Tensor

from factordiff.arc.svg import expert_color
from factordiff.cli.terminal_grids import EXPERTS, colored, is_light
from factordiff.files import write_whole
from factordiff.printable import visible
from factordiff.team.infill import Document, Infilled, Progress, infill
from factordiff.team.team import Team
from factordiff.text.document import lines_of

NOBODY_ALONE = "all together"


def fill_and_show(
    team: Team,
    documents: Sequence[Document],
    hidden: Sequence[Tensor],
    temperature: float | None,
    seed: int,
    out: Path | None,
) -> None:
    """Fill the hidden cells, print every document with who decided what, and write them if that is asked for."""
    console = Console(highlight=False, soft_wrap=True)
    written = []
    for document, cells in zip(documents, hidden, strict=True):
        if document.title:
            console.print(document.title, style="bold", markup=False)
        written.append(_fill_one(console, team, document, cells, temperature, seed))
    if out is not None:
        write_whole(out, "".join(written).encode())
        console.print(f"wrote {out}", markup=False)


def _fill_one(
    console: Console, team: Team, document: Document, hidden: Tensor, temperature: float | None, seed: int
) -> str:
    x_0 = document.cells
    x_t = torch.where(hidden, document.vocabulary.mask, x_0)
    begun = time.perf_counter()
    with console.status("filling in") as status:
        filled = infill(
            team, x_t, document.window, temperature=temperature, seed=seed, on_cell=_progress(status, begun)
        )
    text = document.shown(filled.x_0, hidden)
    in_color = colored(console)
    # A terminal breaks what is too long for it: letters below must be broken with it, and sentences between words.
    width = console.width if console.is_terminal else None
    console.print(drawn(text, filled, in_color, width), end="" if text.endswith("\n") else "\n")
    console.print(legend(team, filled, document.unit, in_color), soft_wrap=width is None)
    right = int((filled.x_0 == x_0)[hidden].sum())
    console.print(
        f"{right} of {int(hidden.sum())} hidden {document.unit} as they were; {' + '.join(team.names)}, "
        f"{team.method_name}, {filled.passes} passes, {time.perf_counter() - begun:.1f} s",
        style="dim",
        markup=False,
        soft_wrap=width is None,
    )
    for remark in document.remarks(text):
        console.print(remark, style="dim", markup=False)
    return document.written(text)


def _progress(status: Status, begun: float) -> Progress:
    def hear(done: int, total: int) -> None:
        left = (time.perf_counter() - begun) * (total - done) / max(done, 1)
        status.update(f"{done} of {total}, {left:.0f} s left")

    return hear


def drawn(text: str, filled: Infilled, in_color: bool, width: int | None = None) -> Text:
    """The text; filled characters stand on their expert's color, or have its letter below where there are no colors.

    With letters below, lines are broken at `width`, so that each letter stands below its character.
    """
    shown = Text()
    position = 0
    for line in lines_of(text):
        here = slice(position, position + len(line))
        hidden, who = filled.hidden[here].tolist(), filled.decided_by[here].tolist()
        position += len(line)
        if not in_color:
            shown.append(_with_letters(line, hidden, who, width))
            continue
        for character, was_hidden, expert in zip(visible(line), hidden, who, strict=True):
            if was_hidden:
                style = Style(bold=True, reverse=expert < 0)
                shown.append(character, style + (_on(expert_color(expert)) if expert >= 0 else Style()))
            else:
                shown.append(character)
    return shown


def _on(color: str) -> Style:
    return Style(bgcolor=color, color="black" if is_light(Color.parse(color)) else "bright_white")


def _with_letters(line: str, hidden: Sequence[bool], who: Sequence[int], width: int | None) -> str:
    """A line and below it who decided what was hidden, as many characters at a time as there is room for."""
    if not any(hidden):
        return visible(line)
    marks = "".join(_mark(one, two) for one, two in zip(hidden, who, strict=True))
    room = width or len(line)
    length = len(line) if hidden[-1] else len(line.rstrip("\n"))  # the end of a line may have a letter too
    parts = []
    for start in range(0, length, room):
        here = slice(start, start + room)
        below = marks[here].rstrip()
        parts.append(visible(line[here]).rstrip("\n") + "\n" + (below + "\n" if below else ""))
    return "".join(parts)


def _mark(was_hidden: bool, expert: int) -> str:
    return " " if not was_hidden else "*" if expert < 0 else EXPERTS.letter(expert)


def legend(team: Team, filled: Infilled, unit: str, in_color: bool) -> Text:
    """Which color or letter is whose, and how many cells each decided."""
    shown = Text()
    who = filled.decided_by[filled.hidden]
    for index, name in enumerate(team.names):
        shown.append(
            "  " if in_color else EXPERTS.letter(index),
            Style(bgcolor=expert_color(index)) if in_color else "",
        )
        shown.append(f" {name}: {int((who == index).sum())} {unit}   ")
    if bool((who < 0).any()):
        shown.append(f"{'' if in_color else '* '}{NOBODY_ALONE}: {int((who < 0).sum())} {unit}")
    return shown
