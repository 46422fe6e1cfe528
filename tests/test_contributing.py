"""CONTRIBUTING.md keeps its word: its files run as they stand, are as short as it says, and are found everywhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from factordiff.cli import eval as _eval  # noqa: F401
from factordiff.cli import solve as _solve  # noqa: F401
from factordiff.cli.app import app
from factordiff.composition import method
from factordiff.composition.method import spec, specs

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL
)


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods that are declared here are gone after the test."""
    specs()
    monkeypatch.setattr(method, "_SPECS", dict(method._SPECS))


@pytest.mark.usefixtures("methods")
def test_the_exercises_run_and_print_what_the_page_says() -> None:
    namespace: dict[str, Any] = {"__name__": "exercise"}
    for code, expected in BLOCKS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "CONTRIBUTING.md", "exec"), namespace)
        assert printed.getvalue() == expected
    assert spec("trimmed-mean").options[0].default == 0.25
    for verb in ("solve", "eval"):
        shown = CliRunner().invoke(app, [verb, "--help"], terminal_width=120).output
        assert "--trim" in shown
        assert "trimmed-mean" in shown


def test_they_are_short() -> None:
    composition, expert = BLOCKS[0][0], BLOCKS[2][0]
    assert len(composition.strip().splitlines()) <= 35
    alone = re.search(r"class Parity.*?\n\n\n", expert, re.DOTALL)
    assert alone is not None
    assert len(alone.group().strip().splitlines()) <= 15


def test_the_version_is_shown() -> None:
    shown = CliRunner().invoke(app, ["--version"]).output
    assert re.fullmatch(r"factordiff \d+\.\d+\.\d+\n", shown)
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {shown.split()[1]}\n" in cited
