"""A submission's file, written as the answers come."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factordiff.arc.task_files import write_json
from factordiff.errors import FileError
from factordiff.solving.answer import TaskAnswers

SECONDS = 1.0  # between two writes: what a kill may cost


class Submission:
    """All answers so far, in a file that is whole at every moment; without a file, nothing."""

    def __init__(self, file: Path | None, complain: Callable[[str], None]) -> None:
        self.file, self._complain = file, complain
        self._content: dict[str, list[dict[str, Any]]] = {}
        self._written, self._due, self._failed = 0, time.monotonic() + SECONDS, False

    def __repr__(self) -> str:
        return f"Submission({self.file}, {len(self._content)} tasks, {self._written} of them written)"

    def add(self, answers: TaskAnswers) -> None:
        """One more task; a file that cannot be written now is tried again later, and answering goes on."""
        self._content[answers.task] = answers.submission()
        if time.monotonic() >= self._due:
            try:
                self._write()
            except FileError as error:
                if not self._failed:
                    self._complain(f"{error}. Answering goes on, and writing is tried again")
                self._failed = True
            self._due = time.monotonic() + SECONDS

    def keep(self) -> None:
        """Write what is answered and not written yet."""
        if len(self._content) > self._written:
            self._write()

    def finish(self) -> None:
        """Write the whole submission, one without answers too."""
        if not self._content or len(self._content) > self._written:
            self._write()

    def _write(self) -> None:
        if self.file is not None:
            write_json(self._content, self.file)
        self._written = len(self._content)
