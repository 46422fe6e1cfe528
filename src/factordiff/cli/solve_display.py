"""What `factordiff solve` shows and writes once its arguments are read."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.style import Style
from rich.table import Table
from rich.text import Text

from factordiff.arc.svg import COLORS, HIDDEN, expert_color
from factordiff.arc.task import Task
from factordiff.arc.task_files import write_json
from factordiff.cli.submission import Submission
from factordiff.cli.terminal import LenientStream
from factordiff.errors import FileError, InvalidInput
from factordiff.files import check_outputs
from factordiff.printable import printable
from factordiff.solving.answer import Answer, Refusal, TaskAnswers
from factordiff.solving.explanation import Explanation
from factordiff.solving.pictures import (
    animation,
    check_ending,
    picture,
    save_animation,
    save_picture,
)
from factordiff.solving.solver import check_task
from factordiff.solving.sources import would_be_read
from factordiff.solving.story import NOBODY
from factordiff.solving.team import Team

TRACE_VERSION = 1
LONGEST_REASON = 500  # of what is said about a task that is refused
PLAIN_WIDTH = 120
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Outputs:
    """What is wanted besides the terminal."""

    picture: Path | None = None
    animate: Path | None = None
    trace: Path | None = None
    out: Path | None = None
    explain: bool = False

    def check(self, source: Path | None) -> None:
        """Refuse bad file names before any work is done; `source` is what is read."""
        if self.picture is not None:
            check_ending("--picture", self.picture, (".png",))
        if self.animate is not None:
            check_ending("--animate", self.animate, (".gif",))
        read = [] if source is None else [source]
        if source is not None and os.path.isdir(
            source
        ):  # what is written into it would be a task the next time
            read = [file for file in self.files().values() if would_be_read(file, source)]
        check_outputs(self.files(), read)

    def files(self) -> dict[str, Path]:
        """The files that are wanted, by their options."""
        wanted = {
            "--picture": self.picture,
            "--animate": self.animate,
            "--trace": self.trace,
            "--out": self.out,
        }
        return {option: file for option, file in wanted.items() if file is not None}

    def write_beside(self, solved: Sequence[TaskAnswers]) -> list[Path]:
        """Write what was asked for besides the submission; returns the names of all files."""
        answers = [answer for task in solved for answer in task]
        if self.trace is not None:
            write_json({"version": TRACE_VERSION, "tasks": _traces(solved)}, self.trace)
        if self.picture is not None and answers:
            save_picture(picture(answers), self.picture)
        if self.animate is not None and answers:
            save_animation([frame for answer in answers for frame in animation(answer)], self.animate)
        pictured = [self.picture, self.animate] if answers else []
        return [file for file in (self.out, self.trace, *pictured) if file is not None]


def answer_all(team: Team, tasks: Sequence[Task | Refusal], seed: int, outputs: Outputs) -> int:
    """Answer every task that can be answered, show and write the answers; returns how many were refused.

    The submission is written as the answers come, and the rest after it: whatever ends this early, what was answered
    before is kept.
    """
    stream: Any = LenientStream(sys.stdout)
    console = Console(highlight=False, file=stream)
    if not console.is_terminal:
        console = Console(highlight=False, file=stream, width=PLAIN_WIDTH)
    complaints = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    submission = Submission(outputs.out, complaints.print)
    solved: list[TaskAnswers] = []
    refusals = 0
    begun = time.perf_counter()
    try:
        for number, task in enumerate(tasks):
            refusal = refused(task)
            if refusal is not None:
                refusals += 1
                complaints.print(f"refused: {printable(refusal.reason, LONGEST_REASON)}")
                continue
            assert isinstance(task, Task)
            with console.status(f"{escape(printable(task.id))} ({number + 1} of {len(tasks)})"):
                solved.append(team.solve(task, seed=seed))
            submission.add(solved[-1])
            for answer in solved[-1]:
                show(console, answer)
                if outputs.explain:
                    _show_explanation(console, answer, complaints)
    except BaseException:
        submission.keep()
        raise
    submission.finish()
    files = outputs.write_beside(solved)
    _summarise(console, team, solved, refusals, time.perf_counter() - begun, files)
    console.file.flush()
    if stream.failure is not None:
        raise FileError(
            f"standard output: cannot be written ({stream.failure.strerror}); other files are whole"
        )
    return refusals


def refused(task: Task | Refusal) -> Refusal | None:
    """Why a task cannot be answered, if it cannot."""
    if isinstance(task, Refusal):
        return task
    try:
        check_task(task)
    except InvalidInput as error:
        return Refusal(task.id, str(error))
    return None


def show(console: Console, answer: Answer) -> None:
    """One answer: input, attempts, who decided, and the truth where it is known."""
    colored = console.color_system is not None and not console.no_color
    panels = [("input", drawn_cells(answer.query, colored)), ("attempt 1", drawn_cells(answer.grid, colored))]
    if answer.routing is not None:
        panels.append(("decided by", drawn_speakers(answer.routing.labels, colored)))
    panels.append(("attempt 2", drawn_cells(answer.alternative, colored)))
    if answer.truth is not None:
        panels.append(("truth", drawn_cells(answer.truth, colored)))
    verdict = {None: "", True: "  [green]right[/]", False: "  [red]wrong[/]"}[answer.right]
    console.print(f"\n[bold]{escape(printable(answer.task))}[/], test {answer.number}{verdict}")
    table = Table.grid(padding=(0, 3))
    table.add_row(*(Text(title, style="dim") for title, _ in panels))
    table.add_row(*(drawing for _, drawing in panels))
    console.print(table)
    if answer.routing is not None:
        legend = Text()
        for index, (name, count) in enumerate(answer.routing.shares().items()):
            legend.append(
                "  " if colored else letter(index), Style(bgcolor=expert_color(index)) if colored else ""
            )
            legend.append(f" {printable(name)}: {count} cells   ")
        console.print(legend)
    console.print(alternative_sentence(answer), style="dim", markup=False)
    console.print(f"{answer.executed_passes} passes, the experts alone included", style="dim")


def alternative_sentence(answer: Answer) -> str:
    """What attempt 2 is, and how far from attempt 1."""
    if answer.alternative_by is None:
        return "attempt 2 is attempt 1: no expert answers otherwise alone"
    said = f"attempt 2 is what {answer.alternative_by} answers alone"
    if answer.alternative.shape != answer.grid.shape:
        (height, width), (wanted, across) = answer.alternative.shape, answer.grid.shape
        return f"{said}; it is {height}x{width}, not {wanted}x{across}"
    return f"{said}; {int((answer.alternative != answer.grid).sum())} of {answer.grid.size} cells differ"


def drawn_cells(grid: np.ndarray, colored: bool) -> Text:
    """A grid in ARC's colors; cells that nobody decided yet are left out."""
    return _drawn(
        grid,
        lambda value: HIDDEN if value == NOBODY else COLORS[value],
        lambda value: "." if value == NOBODY else str(value),
        colored,
    )


def drawn_speakers(labels: np.ndarray, colored: bool) -> Text:
    """Who decided each cell, in the experts' colors."""
    return _drawn(
        labels,
        lambda label: HIDDEN if label == NOBODY else expert_color(label),
        lambda label: "." if label == NOBODY else letter(label),
        colored,
    )


def letter(index: int) -> str:
    """The letter that stands for an expert where there are no colors; two from the 27th on."""
    more, one = divmod(index, len(LETTERS))
    return LETTERS[one] if more == 0 else LETTERS[more - 1] + LETTERS[one]


def _drawn(
    labels: np.ndarray, color_of: Callable[[int], str], letter_of: Callable[[int], str], colored: bool
) -> Text:
    """Two columns of the terminal per cell: a color, or a letter where there are none."""
    text = Text(no_wrap=True)
    for number, row in enumerate(labels.tolist()):
        text.append("\n" if number else "")
        for label in row:
            text.append(
                "  " if colored else f"{letter_of(label):<2}",
                Style(bgcolor=color_of(label)) if colored else "",
            )
    return text


def _show_explanation(console: Console, answer: Answer, complaints: Console) -> None:
    try:
        explanation = answer.explain()
    except InvalidInput as error:
        complaints.print(str(error))
        return
    console.print(explanation_table(explanation))
    disputed = len(explanation.disputed())
    console.print(f"{len(explanation)} cells, {disputed} of them disputed (*)", style="dim")


def explanation_table(explanation: Explanation) -> Table:
    """Every decision in order: cell, color, who decided, and each expert's color, chance and margin."""
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("step", "row", "column", "color"):
        table.add_column(heading, justify="right")
    table.add_column("decided by", no_wrap=True)
    for name in explanation.experts:
        table.add_column(f"{name} said", no_wrap=True)
    for decision in explanation:
        table.add_row(
            str(decision.step),
            str(decision.row),
            str(decision.column),
            f"{decision.color}{'*' if decision.disputed else ''}",
            decision.decided_by or "all",
            *(f"{one.color} ({one.chance:.2f}), margin {one.margin:.4f}" for one in decision.opinions),
        )
    return table


def _traces(solved: Sequence[TaskAnswers]) -> dict[str, list[dict[str, object]]]:
    return {
        task.task: [
            {
                "test": answer.number,
                "experts": list(answer.team.names),
                "method": answer.team.method,
                "shape": list(answer.shape),
                "trace": None if answer.trace is None else json.loads(answer.trace.to_json()),
            }
            for answer in task
        ]
        for task in solved
    }


def _summarise(
    console: Console,
    team: Team,
    solved: Sequence[TaskAnswers],
    refusals: int,
    seconds: float,
    files: list[Path],
) -> None:
    judged = [task.right for task in solved if task.right is not None]
    parts = [f"{len(solved)} answered"]
    if judged:
        parts.append(f"{sum(judged)} of {len(judged)} with known answers right")
    if refusals:
        parts.append(f"{refusals} refused")
    names = " + ".join(team.names)
    console.print(f"\n{', '.join(parts)}; {names}, {team.method}, {seconds:.1f} s", markup=False)
    for file in files:
        console.print(f"wrote {printable(str(file), 500)}", markup=False)
