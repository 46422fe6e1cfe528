"""The numbers of a caption, counted once more in a recording: the plainest way."""

from __future__ import annotations

import re

from factordiff.web.record import Recording


def wrong_cells(told: Recording, run: int) -> list[int]:
    """The cells that a run has otherwise than they should be."""
    picture, canvas = told.candidate["picture"], told.runs[run][-1]["canvas"]
    return [
        row * picture["side"] + column
        for row, values in enumerate(picture["right"])
        for column, value in enumerate(values)
        if canvas[row * picture["side"] + column] != value
    ]


def decided_by(told: Recording, run: int) -> dict[int, int]:
    """Who decided each cell."""
    return {
        cell: step["routing"][step["cells"].index(cell)]
        for step in told.runs[run][1:-1]
        for cell in step["revealed"]
    }


def quarters(cells: list[int]) -> list[int]:
    """The quarters of a mosaic that the cells lie in."""
    return sorted({2 * (cell // 20 // 10) + cell % 20 // 10 for cell in cells})


def counted(told: Recording, ended: str) -> str:
    """What the page has to say once so many runs are over."""
    owners = told.candidate["picture"].get("owners")

    def number(found: re.Match[str]) -> str:
        what, run, of = found[1], int(found[2]), found[3]
        wrong = wrong_cells(told, run)
        if what == "wrong":
            return str(sum(of is None or owners[cell] == int(of) for cell in wrong))
        others = [cell for cell, expert in decided_by(told, run).items() if expert != owners[cell]]
        return str(4 - len(quarters({"quarters": wrong, "owned": others}[what])))

    return re.sub(r"\{(\w+) (\d)(?: of (\d))?\}", number, told.story.captions[ended])
