"""What `factordiff solve` shows and writes once its arguments are read."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from factordiff.arc.task import Task
from factordiff.arc.task_files import write_json
from factordiff.cli.answer_display import show_answer, show_task
from factordiff.cli.explanation_display import show_explanation
from factordiff.cli.submission import Submission
from factordiff.cli.terminal import LenientStream
from factordiff.cli.terminal_grids import plain_console
from factordiff.errors import FileError, InvalidInput
from factordiff.files import check_outputs, write_whole
from factordiff.printable import printable
from factordiff.solving.answer import Answer, Refusal, TaskAnswers
from factordiff.solving.page import page
from factordiff.solving.pictures import animation, check_ending, picture, save_animation, save_picture
from factordiff.solving.solver import check_task, solve
from factordiff.solving.wording import tally
from factordiff.team.team import Team

TRACE_VERSION = 1
LONGEST_REASON = 500  # of what is said about a task that is refused


@dataclass(frozen=True)
class Outputs:
    """What is wanted besides the terminal."""

    picture: Path | None = None
    animate: Path | None = None
    trace: Path | None = None
    out: Path | None = None
    html: Path | None = None
    explain: bool = False
    show: bool = False
    attempts: int = 2

    def check(self, inputs: Iterable[Path]) -> None:
        """Refuse bad file names before any work is done; `inputs` are what is read."""
        for option, ending in (("--picture", ".png"), ("--animate", ".gif"), ("--html", ".html")):
            if option in self.files():
                check_ending(option, self.files()[option], ending)
        check_outputs(self.files(), inputs)

    def files(self) -> dict[str, Path]:
        """The files that are wanted, by their options."""
        wanted = {
            "--picture": self.picture,
            "--animate": self.animate,
            "--trace": self.trace,
            "--out": self.out,
            "--html": self.html,
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
        if self.html is not None:
            write_whole(self.html, page(solved, self.explain).encode())
        pictured = [self.picture, self.animate] if answers else []
        return [file for file in (self.out, self.trace, *pictured, self.html) if file is not None]


def answer_all(team: Team, tasks: Sequence[Task | Refusal], seed: int, outputs: Outputs) -> int:
    """Answer every task that can be answered, show and write the answers; returns how many were refused.

    The submission is written as the answers come, and the rest after it: whatever ends this early, what was answered
    before is kept.
    """
    stream: Any = LenientStream(sys.stdout)
    console = plain_console(stream)
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
                solved.append(solve(task, team, seed=seed, attempts=outputs.attempts))
            submission.add(solved[-1])
            if outputs.show:
                console.print(f"\n[bold]{escape(printable(task.id))}[/]")
                show_task(console, task, tests=False)
            for answer in solved[-1]:
                show_answer(console, answer)
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


def _show_explanation(console: Console, answer: Answer, complaints: Console) -> None:
    try:
        explanation = answer.explain()
    except InvalidInput as error:
        complaints.print(str(error))
        return
    show_explanation(console, explanation)


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
    parts = [f"{len(solved)} answered"]
    right = tally(answer for task in solved for answer in task)
    if right:
        parts.append(right)
    if refusals:
        parts.append(f"{refusals} refused")
    names = " + ".join(team.names)
    console.print(f"\n{', '.join(parts)}; {names}, {team.method}, {seconds:.1f} s", markup=False)
    for file in files:
        console.print(f"wrote {printable(str(file), 500)}", markup=False)
