"""The whole command line under drawn arguments: no traceback, no hang, documented exit codes, no stray file."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from factordiff.cli.app import main
from factordiff.errors import FactorDiffError
from tests.cli.drawn_commands import Desk, drawn

EXIT_CODES = (0, 1, 2, 3)
SECONDS = 10  # of the processor's time, so that a busy machine is no hang; of the clock, six times as many
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


class Hanging(BaseException):
    """It took too long."""


class Reached(FactorDiffError):
    """Everything was checked, and the work, which would take long, would have begun."""


def stopped(*_: Any, **__: Any) -> Any:
    raise Reached("the work begins")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("desk") / "deep" / "here"
    folder.mkdir(parents=True)
    patch.chdir(folder)
    patch.setenv("COLUMNS", "100")
    jaxtyping.config.update("jaxtyping_disable", True)  # as users run it
    for place in (
        "factordiff.arc.build.assembly.build",
        "factordiff.arc.build.selection.measure",
        "factordiff.arc.build.training_only.build_training_only",
        "factordiff.text.build.build",
        "factordiff.worlds.antibody.fetching.fetch",
        "factordiff.bench.speed.measure",
        "factordiff.bench.curve.accuracy_against_passes",
        "factordiff.cli.reproduction._run",
        "factordiff.training.trainer.Trainer.run",
        "factordiff.team.team.Team.fit",
        "factordiff.team.team.Team.diagnose",
        "factordiff.cli.demo._exactness",
        "factordiff.cli.demo_arc.compose",
        "factordiff.cli.demo_world.demonstrate_world",
        "uvicorn.Server.run",
    ):
        patch.setattr(place, stopped)
    patch.setattr("factordiff.cli.evaluation.run_row", _short(2))
    yield Desk(Path("."))
    jaxtyping.config.update("jaxtyping_disable", False)
    patch.undo()


def _short(queries: int) -> Callable[..., None]:
    """`run_row`, for so many queries at most."""
    from factordiff.cli.evaluation import run_row

    def run(row: Any, *rest: Any) -> None:
        if row.queries is None or row.queries > queries:
            stopped()
        run_row(row, *rest)

    return run


@contextmanager
def time_limit() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Hanging

    before = [(kind, signal.signal(kind, late)) for kind in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for kind, handler in before:
            signal.signal(kind, handler)


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int | str, str]:
    """The exit code, or the traceback, and what was printed."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["factordiff", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            with time_limit():
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


def allowed(changed: str, words: list[str], root: Path) -> bool:
    """Whether a file was asked for: it is named, or lies in a folder that is, or is what the verb usually writes."""
    path = root / changed
    for word in (*words, *USUAL):
        try:
            named = Path(os.path.realpath(word.partition("=")[2] or word))
        except (OSError, ValueError):
            continue
        manifest = named.with_suffix(".json") if named.name and named.suffix == ".npz" else named
        if path in (named, manifest) or path.is_relative_to(named) or named.is_relative_to(path):
            return True
    return False


def check(desk: Desk, numbers: range, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path.cwd().parents[1]
    inputs = {os.path.relpath(path.absolute(), root) for path in desk.inputs if not path.is_dir()}
    before = tree(root)
    kept = {name: before[name] for name in inputs}
    wrong = []
    for number in numbers:
        words = drawn(desk, number)
        code, printed = run(words, monkeypatch)
        shown = " ".join(word[:60] for word in words)
        if code not in EXIT_CODES:
            wrong.append(f"{number}: {shown!r}: {str(code)[-1500:]}")
        if "Traceback" in printed or "\x1b]" in printed or (code == 1 and not printed.strip()):
            wrong.append(f"{number}: {shown!r}: printed {printed[-800:]!r}")
        after = tree(root)
        stray = [
            name
            for name in after.keys() | before.keys()
            if after.get(name) != before.get(name) and not allowed(name, words, root)
        ]
        lost = [name for name in inputs if after.get(name) != kept[name]]
        if stray or lost:
            wrong.append(f"{number}: {shown!r}: stray {stray}, lost {lost}")
        before = after
    assert not wrong, f"{len(wrong)} of {len(numbers)}:\n" + "\n".join(wrong)


def test_150_command_lines(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    check(desk, range(150), monkeypatch)


@pytest.mark.slow
def test_2000_command_lines(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    check(desk, range(150, 2_150), monkeypatch)
