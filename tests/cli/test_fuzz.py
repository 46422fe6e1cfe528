"""The whole command line under drawn arguments: no traceback, no hang, documented exit codes, no stray file."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import stat
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch

from factordiff.cli.app import main
from factordiff.errors import FactorDiffError
from tests.cli.clocks import Work, time_limit
from tests.cli.drawn_commands import WRITTEN, Desk, drawn, with_every_number

EXIT_CODES = (0, 1, 2, 3)
STOPPED = 130  # as Ctrl-C does
# What a verb writes when nobody says where.
USUAL = (
    "runs",
    "rearc.npz",
    "rearc.json",
    "tasks.json",
    "more.npz",
    "more.json",
    "demo.png",
    "demo.gif",
    "data",
)


class Reached(FactorDiffError):
    """What would come now needs the network, other processes, or never ends."""


def refuse(*_: Any, **__: Any) -> Any:
    raise Reached("this would go on outside of the process")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("desk") / "deep" / "here"
    folder.mkdir(parents=True)
    patch.chdir(folder)
    patch.setenv("COLUMNS", "100")
    threads = torch.get_num_threads()
    jaxtyping.config.update("jaxtyping_disable", True)  # as users run it
    for place in (
        "concurrent.futures.ProcessPoolExecutor.submit",
        "factordiff.text.packages._download",
        "factordiff.worlds.antibody.fetching.downloaded",
        "uvicorn.Server.run",
    ):
        patch.setattr(place, refuse)
    yield Desk(Path("."))
    torch.set_num_threads(threads)
    jaxtyping.config.update("jaxtyping_disable", False)
    patch.undo()


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int | str, str]:
    """The exit code, or the traceback, and what was printed."""
    torch.set_num_threads(1)  # a command may have set others, and waiting for a thread looks like hanging
    torch.use_deterministic_algorithms(False)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["factordiff", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            with time_limit():
                try:
                    main()
                    code: int | str = 0
                except SystemExit as ended:
                    code = 0 if ended.code is None else ended.code
        except BaseException:
            code = traceback.format_exc()
    printed = (out.buffer.getvalue() + err.buffer.getvalue()).decode()  # type: ignore[attr-defined]
    return code, printed


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder and what is in it; of others, what they are."""
    found = {}
    for place, folders, names in os.walk(folder):
        for name in (*names, *folders):
            path = os.path.join(place, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
            else:
                found[os.path.relpath(path, folder)] = str(stat.S_IFMT(mode))
    return found


def places(word: str) -> list[Path]:
    """The files or folders that a word may name: itself, or its parts, as in NAME=FOLDER or ONE,OTHER."""
    found = []
    for part in (word, *re.split("[=,]", word)):
        with contextlib.suppress(OSError, ValueError):
            found.append(Path(os.path.realpath(part)))
    return found


def allowed(changed: Path, words: list[str]) -> bool:
    """Whether a file was asked for: it is named, or lies in a folder that is, or is what the verb usually writes."""
    for named in (place for word in (*words, *USUAL) for place in places(word)):
        manifest = named.with_suffix(".json") if named.name and named.suffix == ".npz" else named
        if changed in (named, manifest) or changed.is_relative_to(named) or named.is_relative_to(changed):
            return True
    return False


def read(changed: Path, words: list[str]) -> bool:
    """Whether a file is, or lies in, something that was named to be read."""
    before = ["", *words]
    named = [word for word, option in zip(words, before, strict=False) if option not in WRITTEN]
    return any(changed.is_relative_to(place) for word in named for place in places(word))


def tidy(root: Path, names: Iterable[str]) -> None:
    """Remove what was written; longer names first, which are inside of shorter ones."""
    for path in sorted((root / name for name in names), key=lambda path: -len(str(path))):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def check(lines: Iterable[list[str]], desk: Desk, moment: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run command lines, each with so many seconds of work; what three of four have written is removed again."""
    root = Path.cwd().parents[1]
    work = Work(moment)
    work.watch(monkeypatch)
    kept = {path.resolve(): path.read_bytes() for path in desk.inputs if path.is_file()}
    first = before = tree(root)
    wrong, number = [], 0
    for number, words in enumerate(lines):
        work.forget()
        code, printed = run(words, monkeypatch)
        shown = f"{number}: {' '.join(word[:60] for word in words)!r}"
        if code not in EXIT_CODES and not (code == STOPPED and work.stopped):
            wrong.append(f"{shown}: {str(code)[-1500:]}")
        if "Traceback" in printed or "\x1b]" in printed or (code == 1 and not printed.strip()):
            wrong.append(f"{shown}: printed {printed[-800:]!r}")
        after = tree(root)
        changed = [
            root / name for name in after.keys() | before.keys() if after.get(name) != before.get(name)
        ]
        stray = [path for path in changed if not allowed(path, words)]
        lost = [path for path in changed if path in kept and read(path, words)]
        if stray or lost:
            wrong.append(f"{shown}: stray {stray}, lost {lost}")
        for path in set(changed) & kept.keys():
            path.write_bytes(kept[path])
        if number % 4:
            tidy(root, after.keys() - first.keys())
        before = tree(root)
    assert not wrong, f"{len(wrong)} of {number + 1}:\n" + "\n".join(wrong)


def test_60_command_lines(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    check((drawn(desk, number) for number in range(60)), desk, 0.2, monkeypatch)


@pytest.mark.slow
def test_2000_command_lines(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    check((drawn(desk, number) for number in range(60, 2_060)), desk, 0.5, monkeypatch)


@pytest.mark.slow
def test_every_number_of_every_verb_at_its_ends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (str(2**31 - 1), str(2**63 - 1), "0", "1e308")
    check((line for end in ends for line in with_every_number(desk, end)), desk, 2.0, monkeypatch)
