"""Commands in this process, as the shell sees them, and what they leave in a folder."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from factordiff.cli import main
from factordiff.report.records import read_records

DONE = (0, "")
SMALL = ("--limit", "2", "--steps", "2", "--particles", "2", "--device", "cpu", "--batch", "1")


def run(*words: str) -> tuple[int, str]:
    """A command's exit code, and what it says on standard error."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()), redirect_stderr(said):
        patch.setattr("sys.argv", ["factordiff", *words])
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


def refused(ended: tuple[int, str], words: str) -> None:
    """Exit code 1 and one sentence, in which these words are."""
    code, said = ended
    assert code == 1, said
    assert said.count("\n") == 1, said
    assert said.startswith("error: "), said
    assert words in said


def reproducing(experts: list[str], out: Path) -> tuple[str, ...]:
    """The shortest run of `reproduce`: one row of one expert, two queries, each a batch."""
    named = [word for folder in experts for word in ("--expert", f"{Path(folder).name}={folder}")]
    return ("reproduce", "single-experts", *SMALL, *named, "--only", "trans-full", "--out", str(out))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones too."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def hidden(folder: Path) -> list[str]:
    """Locks, and files that were never whole."""
    return [name for name in contents(folder) if "/." in f"/{name}"]


def records(folder: Path) -> dict[str, Any]:
    """What the files of records say, but not how long it took."""
    return {path.name: read_records(path).records for path in sorted(folder.rglob("*.jsonl.gz"))}
