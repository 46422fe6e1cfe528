"""Every command and every piece of Python in the pages for people runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.cli.app import app
from factordiff.experts import registry
from factordiff.solving.solver import DEFAULT_EXPERTS
from tests.solving_experts import task, tiny_experts
from tests.task_files import write_challenges, write_task

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (
    "guide.md", "own-expert.md", "own-data.md", "language-models.md", "faq.md", "routers.md", "worlds.md",
)  # fmt: skip
BLOCK = re.compile(r"```(bash|python)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of, and small networks under the names of the shipped experts."""
    write_task(task(), tmp_path / "task.json")
    write_task(task("other"), tmp_path / "tasks" / "other.json")
    write_challenges([task("one")], tmp_path / "challenges.json")
    tiny_experts(tmp_path / "weights", (*DEFAULT_EXPERTS, "trans-occ"))
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "weights")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_command(line: str) -> None:
    line = re.sub(r"--max-steps \d{3,}", "--max-steps 4", line)  # that it runs, not what it learns
    given, _, command = line.rpartition("|")
    words = shlex.split(command)
    assert words[0] == "factordiff", line
    source = Path(shlex.split(given)[1]).read_text() if given else ""
    result = CliRunner().invoke(app, words[1:], input=source)
    assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"


LONG = ("routers.md", "worlds.md")  # of which other tests run the parts


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if page in LONG else ()) for page in PAGES]
)
def test_the_page_runs(page: str, desk: Path) -> None:
    namespace: dict[str, Any] = {}
    for language, code, output in BLOCK.findall((DOCS / page).read_text()):
        if language == "bash":
            for line in code.strip().replace("\\\n", "").splitlines():
                run_command(line)
            continue
        if file := re.match(r"# (\w+\.py)\n", code):  # a file for a command, not code to run here
            (desk / file[1]).write_text(code)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), namespace)
        if output:
            assert printed.getvalue() == output, code
    if page == "guide.md":
        assert list(json.loads((desk / "submission.json").read_text())) == ["0ca9ddb6"]
        for file in ("answer.png", "answer.gif", "steps.json"):
            assert (desk / file).stat().st_size > 0


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    root = DOCS.parent
    for name in re.findall(r"`((?:examples|tests|arc)/[\w/]+\.py)`", (DOCS / page).read_text()):
        assert (root / name).exists() or (root / "src/factordiff" / name).exists(), name


def test_the_guide_knows_every_method() -> None:
    from factordiff.composition.method import specs

    guide = (DOCS / "guide.md").read_text()
    table = guide.split("| `--method` |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", table)) == set(specs())
