"""Answers as a picture and as an animation: input, attempts, who decided, and how the grid filled."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from factordiff.arc.drawing import GAP, INK, LINE, PAPER, TITLE_HEIGHT, draw_grid
from factordiff.arc.grid import SIDE
from factordiff.arc.svg import HIDDEN, expert_color
from factordiff.errors import InvalidInput
from factordiff.files import write_whole
from factordiff.printable import printable
from factordiff.solving.answer import Answer
from factordiff.solving.story import NOBODY, chapters
from factordiff.solving.team import Team

CELL = 16
LEGEND = 20
LONGEST_NAME = 40  # of an expert, in letters
PAUSE_MS, LAST_PAUSE_MS = 120, 2_000
NO_PATH = (
    "animate: a vote over several experts has no single path to show; choose another method or leave it out"
)


def picture(answers: Sequence[Answer]) -> Image.Image:
    """One row per answer: input, both attempts, the routing map and, where it is known, the truth."""
    if not answers:
        raise InvalidInput("picture: expected at least one answer, got none")
    return _stacked([_row(answer) for answer in answers])


def animation(answer: Answer) -> list[Image.Image]:
    """The answer as it filled, step by step, beside who decided each cell."""
    if answer.trace is None:
        raise InvalidInput(NO_PATH)
    height, width = answer.shape
    mask = answer.trace.values
    cells = np.array(answer.trace.start[0]).reshape(SIDE, SIDE)
    speakers = np.full((SIDE, SIDE), NOBODY)
    told = chapters(answer.samples)
    frames = []
    for step in range(len(told) + 1):
        if step:
            chapter = told[step - 1]
            cells = np.array(chapter.after).reshape(SIDE, SIDE)
            for cell in chapter.revealed if chapter.routing is not None else ():
                speakers[divmod(cell, SIDE)] = chapter.routing[cell] if chapter.routing else NOBODY
        panels = [
            ("input", draw_grid(answer.query, CELL)),
            (f"step {step}", _partly(cells, mask, height, width)),
        ]
        if answer.routing is not None:
            panels.append(("decided by", _labels(speakers[:height, :width])))
        frames.append(_titled(f"{answer.task}, test {answer.number}", panels, answer.team.names))
    return frames


def save_picture(image: Image.Image, file: Path) -> None:
    """Write a picture whole or not at all; the file's ending says which kind."""
    _save(file, lambda stream, kind: image.save(stream, kind))


def save_animation(frames: Sequence[Image.Image], file: Path) -> None:
    """Write an animated GIF whole or not at all."""
    width, height = max(one.width for one in frames), max(one.height for one in frames)
    framed = [_padded(frame, width, height) for frame in frames]
    pauses = [PAUSE_MS] * (len(framed) - 1) + [LAST_PAUSE_MS]
    _save(
        file,
        lambda stream, kind: framed[0].save(
            stream, kind, save_all=True, append_images=framed[1:], duration=pauses, loop=0
        ),
    )


def check_ending(option: str, file: Path, endings: Sequence[str]) -> None:
    """Refuse a file name of the wrong kind before any work is done."""
    if file.suffix.lower() not in endings:
        raise InvalidInput(f"{option}: expected a file name that ends in {' or '.join(endings)}, got {file}")


def check_path_to_show(team: Team) -> None:
    """Refuse to animate a team whose answers are pooled from several runs, before any work is done."""
    if team.method == "vote" and len(team) > 1:
        raise InvalidInput(NO_PATH)


def _save(file: Path, write: Callable[[io.BytesIO, str], None]) -> None:
    content = io.BytesIO()
    write(content, file.suffix.lstrip(".").upper())
    write_whole(file, content.getvalue())


def _row(answer: Answer) -> Image.Image:
    panels = [
        ("input", draw_grid(answer.query, CELL)),
        ("attempt 1", draw_grid(answer.grid, CELL)),
        ("attempt 2", draw_grid(answer.alternative, CELL)),
    ]
    if answer.routing is not None:
        panels.append(("decided by", _labels(answer.routing.labels)))
    if answer.truth is not None:
        panels.append(("truth", draw_grid(answer.truth, CELL)))
    verdict = {None: "", True: ": right", False: ": wrong"}[answer.right]
    return _titled(f"{answer.task}, test {answer.number}{verdict}", panels, answer.team.names)


def _labels(labels: np.ndarray) -> Image.Image:
    """A routing map in the experts' colors."""
    image = draw_grid(np.zeros(labels.shape, dtype=np.uint8), CELL)
    _paint(image, labels, lambda label: expert_color(label) if label != NOBODY else HIDDEN)
    return image


def _partly(cells: np.ndarray, mask: int, height: int, width: int) -> Image.Image:
    """A grid some of whose cells are still masked."""
    shown = cells[:height, :width]
    image = draw_grid(np.where(shown == mask, 0, shown).astype(np.uint8), CELL)
    _paint(image, shown, lambda value: HIDDEN if value == mask else None)
    return image


def _paint(image: Image.Image, labels: np.ndarray, color_of: Callable[[int], str | None]) -> None:
    draw = ImageDraw.Draw(image)
    for (row, column), label in np.ndenumerate(labels):
        color = color_of(int(label))
        if color is not None:
            left, top = column * CELL, row * CELL
            draw.rectangle((left, top, left + CELL, top + CELL), fill=color, outline=LINE)


def _titled(title: str, panels: Sequence[tuple[str, Image.Image]], experts: Sequence[str]) -> Image.Image:
    """Panels side by side under their names, a title above, the experts' colors below."""
    title, experts = printable(title), [printable(name, LONGEST_NAME) for name in experts]
    widths = [max(image.width, 72) for _, image in panels]
    tallest = max(image.height for _, image in panels)
    legend = sum(26 + _text_width(name) for name in experts)
    width = max(sum(widths) + GAP * (len(widths) + 1), legend + GAP, 2 * GAP + _text_width(title))
    page = Image.new("RGB", (width, 2 * TITLE_HEIGHT + tallest + GAP + LEGEND), PAPER)
    _write(page, title, GAP, 4)
    left = GAP
    for (name, image), step in zip(panels, widths, strict=True):
        _write(page, name, left, TITLE_HEIGHT + 2)
        page.paste(image, (left, 2 * TITLE_HEIGHT))
        left += step + GAP
    left, top = GAP, 2 * TITLE_HEIGHT + tallest + 8
    for index, name in enumerate(experts):
        ImageDraw.Draw(page).rectangle((left, top + 2, left + 10, top + 12), fill=expert_color(index))
        _write(page, name, left + 15, top)
        left += 26 + _text_width(name)
    return page


def _stacked(rows: Sequence[Image.Image]) -> Image.Image:
    page = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)), PAPER)
    top = 0
    for row in rows:
        page.paste(row, (0, top))
        top += row.height
    return page


def _padded(image: Image.Image, width: int, height: int) -> Image.Image:
    page = Image.new("RGB", (width, height), PAPER)
    page.paste(image, (0, 0))
    return page


def _text_width(text: str) -> int:
    return int(ImageFont.load_default(size=13).getlength(text)) + 4


def _write(page: Image.Image, text: str, left: int, top: int) -> None:
    ImageDraw.Draw(page).text((left, top), text, fill=INK, font=ImageFont.load_default(size=13))
