"""Answers as a picture and as an animation: input, attempts, who decided, and how the grid filled."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from factordiff.arc.drawing import FONT, GAP, LINE, PAPER, TITLE_HEIGHT, draw_grid, write_text
from factordiff.arc.grid import SIDE
from factordiff.arc.svg import HIDDEN, expert_color
from factordiff.errors import InvalidInput
from factordiff.files import write_whole
from factordiff.printable import printable
from factordiff.sampling.path import NOBODY, path_steps
from factordiff.solving.answer import Answer
from factordiff.team.team import Team

CELL = 16
LONGEST_NAME = 40  # of an expert, in letters
PAUSE_MS, LAST_PAUSE_MS = 120, 2_000
NO_PATH = (
    "animate: a vote over several experts has no single path to show; choose another method or leave it out"
)


class Animation(list[Image.Image]):
    """The frames of an answer as it filled; a notebook plays them."""

    def _repr_png_(self) -> bytes:
        """The frames as one animated PNG."""
        stream = io.BytesIO()
        self[0].save(
            stream, "PNG", save_all=True, append_images=self[1:], duration=_pauses(len(self)), loop=0
        )
        return stream.getvalue()

    def __repr__(self) -> str:
        return f"Animation({len(self)} frames of {self[0].width}x{self[0].height} pixels)"


def picture(answers: Sequence[Answer]) -> Image.Image:
    """One row per answer: input, both attempts, the routing map and, where it is known, the truth."""
    if not answers:
        raise InvalidInput("picture: expected at least one answer, got none")
    return _stacked([_row(answer) for answer in answers])


def animation(answer: Answer, least_width: int = 0) -> Animation:
    """The answer as it filled, step by step, beside who decided each cell, at least so many pixels wide."""
    if answer.trace is None:
        raise InvalidInput(NO_PATH)
    height, width = answer.shape
    across = answer.query.shape[1] + width * (1 if answer.routing is None else 2)
    side = max(CELL, -(-least_width // across))
    mask = answer.trace.values
    cells = np.array(answer.trace.start[0]).reshape(SIDE, SIDE)
    speakers = np.full((SIDE, SIDE), NOBODY)
    told = path_steps(answer.samples)
    frames = Animation()
    for step in range(len(told) + 1):
        if step:
            path_step = told[step - 1]
            cells = np.array(path_step.after).reshape(SIDE, SIDE)
            for cell in path_step.revealed if path_step.routing is not None else ():
                speakers[divmod(cell, SIDE)] = path_step.routing[cell] if path_step.routing else NOBODY
        panels = [
            ("input", draw_grid(answer.query, side)),
            (f"step {step}", _partly(cells[:height, :width], mask, side)),
        ]
        if answer.routing is not None:
            panels.append(("decided by", _labels(speakers[:height, :width], side)))
        done = step == len(told)
        title = f"{answer.task}, test {answer.number}{_verdict(answer.first_right) if done else ''}"
        frames.append(_titled(title, panels, answer.team.names, side * FONT // CELL))
    return frames


def save_picture(image: Image.Image, file: Path) -> None:
    """Write a picture whole or not at all; the file's ending says which kind."""
    _save(file, lambda stream, kind: image.save(stream, kind))


def save_animation(frames: Sequence[Image.Image], file: Path) -> None:
    """Write an animated GIF whole or not at all."""
    width, height = max(one.width for one in frames), max(one.height for one in frames)
    framed = [_padded(frame, width, height) for frame in frames]
    _save(
        file,
        lambda stream, kind: framed[0].save(
            stream, kind, save_all=True, append_images=framed[1:], duration=_pauses(len(framed)), loop=0
        ),
    )


def check_ending(option: str, file: Path, ending: str) -> None:
    """Refuse a file name of the wrong kind before any work is done."""
    if file.suffix.lower() != ending:
        raise InvalidInput(f"{option}: expected a file name that ends in {ending}, got {file}")


def check_path_to_show(team: Team) -> None:
    """Refuse to animate a team whose answers are pooled from several runs, before any work is done."""
    if team.method == "vote" and len(team) > 1:
        raise InvalidInput(NO_PATH)


def _save(file: Path, write: Callable[[io.BytesIO, str], None]) -> None:
    content = io.BytesIO()
    write(content, file.suffix.lstrip(".").upper())
    write_whole(file, content.getvalue())


def _pauses(frames: int) -> list[int]:
    return [PAUSE_MS] * (frames - 1) + [LAST_PAUSE_MS]


def _row(answer: Answer) -> Image.Image:
    panels = [("input", draw_grid(answer.query, CELL)), ("attempt 1", draw_grid(answer.grid, CELL))]
    if answer.second is not None:
        panels.append(("attempt 2", draw_grid(answer.second.grid, CELL)))
    if answer.routing is not None:
        panels.append(("decided by", _labels(answer.routing.labels, CELL)))
    if answer.truth is not None:
        panels.append(("truth", draw_grid(answer.truth, CELL)))
    title = f"{answer.task}, test {answer.number}{_verdict(answer.right)}"
    return _titled(title, panels, answer.team.names)


def _verdict(right: bool | None) -> str:
    return {None: "", True: ": right", False: ": wrong"}[right]


def _labels(labels: np.ndarray, cell: int) -> Image.Image:
    """A routing map in the experts' colors."""
    image = draw_grid(np.zeros(labels.shape, dtype=np.uint8), cell)
    _paint(image, labels, cell, lambda label: expert_color(label) if label != NOBODY else HIDDEN)
    return image


def _partly(shown: np.ndarray, mask: int, cell: int) -> Image.Image:
    """A grid some of whose cells are still masked."""
    image = draw_grid(np.where(shown == mask, 0, shown).astype(np.uint8), cell)
    _paint(image, shown, cell, lambda value: HIDDEN if value == mask else None)
    return image


def _paint(image: Image.Image, labels: np.ndarray, cell: int, color_of: Callable[[int], str | None]) -> None:
    draw = ImageDraw.Draw(image)
    for (row, column), label in np.ndenumerate(labels):
        color = color_of(int(label))
        if color is not None:
            left, top = column * cell, row * cell
            draw.rectangle((left, top, left + cell, top + cell), fill=color, outline=LINE)


def _titled(
    title: str, panels: Sequence[tuple[str, Image.Image]], experts: Sequence[str], font: int = FONT
) -> Image.Image:
    """Panels side by side under their names, a title above, the experts' colors below."""
    title, experts = printable(title), [printable(name, LONGEST_NAME) for name in experts]
    line, swatch = TITLE_HEIGHT * font // FONT, 10 * font // FONT
    widths = [max(image.width, _text_width(name, font)) for name, image in panels]
    tallest = max(image.height for _, image in panels)
    legend = sum(2 * swatch + 6 + _text_width(name, font) for name in experts)
    width = max(sum(widths) + GAP * (len(widths) + 1), legend + GAP, 2 * GAP + _text_width(title, font))
    page = Image.new("RGB", (width, 3 * line + tallest + GAP), PAPER)
    write_text(page, title, GAP, 4, font)
    left = GAP
    for (name, image), step in zip(panels, widths, strict=True):
        write_text(page, name, left, line + 2, font)
        page.paste(image, (left, 2 * line))
        left += step + GAP
    left, top = GAP, 2 * line + tallest + 8
    for index, name in enumerate(experts):
        box = (left, top + swatch // 3, left + swatch, top + swatch // 3 + swatch)
        ImageDraw.Draw(page).rectangle(box, fill=expert_color(index))
        write_text(page, name, left + swatch + 5, top, font)
        left += 2 * swatch + 6 + _text_width(name, font)
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


def _text_width(text: str, font: int) -> int:
    return int(ImageFont.load_default(size=font).getlength(text)) + 4
