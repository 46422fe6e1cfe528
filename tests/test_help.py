"""The help of every verb shows an example, and the example runs as it stands."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import uvicorn
from typer.testing import CliRunner

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.arc.build import selection
from factordiff.cli.app import app
from factordiff.experts import registry
from factordiff.networks.store import build, save_expert
from tests.solving_experts import task, tiny_experts
from tests.task_files import write_task


def examples() -> dict[str, str | None]:
    """From every verb, such as `data show`, to the command that its help shows."""

    def visit(
        command: typer.core.TyperGroup | typer.core.TyperCommand, name: str
    ) -> Iterator[tuple[str, str | None]]:
        for word, inner in getattr(command, "commands", {}).items():
            yield from visit(inner, f"{name} {word}".strip())
        if not hasattr(command, "commands"):
            found = re.search(r"Example: (factordiff .+)", command.help or "")
            yield name, found and found[1]

    return dict(visit(typer.main.get_command(app), ""))


EXAMPLES = examples()
LONG = {
    "card",  # a training and two evaluations before
    "compare",  # tests/worlds compares smaller worlds
    "data build",  # tests/cli/test_data.py builds as much
    "data fetch",  # 100 MB by pip
    "data measure",  # all 178 tasks, by the generators
    "data more",  # 120 tasks, by the generators
    "train",  # tests/cli/test_train.py trains smaller networks
}
# What has to be there already, and the commands that people would have run before.
BEFORE = {
    "card": (
        "factordiff train tiny --max-steps 2 --out runs/mine",
        "factordiff eval --experts runs/mine/weights --limit 6 --reveal confidence:4 --out validation.jsonl.gz",
        "factordiff eval --experts runs/mine/weights --split test --limit 6 --reveal confidence:4 --out test.jsonl.gz",
    ),
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task, and small networks under the names of the shipped experts."""
    write_task(task(), tmp_path / "task.json")
    (tmp_path / "example.py").write_text("import os\n\n# where we are\nprint(os.getcwd())\n")
    for names in (("trans-full", "conv-full"), ("trans-occ", "trans-color")):
        tiny_experts(tmp_path / "weights", names)
    for name in ("text-prose", "text-code"):
        sizes = {"values": 96, "length": 256, "width": 8, "blocks": 1, "heads": 1}
        save_expert(build("transformer", sizes), tmp_path / "weights" / name)
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "weights")
    monkeypatch.setenv("FACTORDIFF_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "factordiff"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception!r}"
    return result.output


def test_every_verb_shows_an_example_of_itself() -> None:
    assert EXAMPLES.keys() >= {"demo", "solve", "eval", "train", "bench", "play", "reproduce", "data show"}
    for verb, command in EXAMPLES.items():
        assert command is not None, f"factordiff {verb} --help shows no example"
        assert f"{command} ".startswith(f"factordiff {verb} ")
        # As people see it: wrapped by the terminal, but there.
        shown = CliRunner().invoke(app, [*verb.split(), "--help"], terminal_width=200).output
        assert command in " ".join(shown.split())


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(verb, marks=pytest.mark.slow if verb in LONG else ())
        for verb in sorted(EXAMPLES.keys() - {"play"})
    ],
)
def test_the_example_runs(verb: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if verb == "data measure":
        monkeypatch.setattr(
            selection, "CANDIDATES", 5
        )  # of 1,500: tests/arc/build/test_selection.py measures all
    for command in BEFORE.get(verb, ()):
        run(command)
    assert run(EXAMPLES[verb] or "")


def test_the_example_of_play_listens_where_it_says(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    served: list[list[socket.socket]] = []

    def listen(host: str, port: int) -> socket.socket:
        asked.append((host, port))  # the port may be taken where this test runs
        return socket.create_server((host, 0))

    monkeypatch.setattr("factordiff.web.listening.listen", listen)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: served.append(sockets))
    shown = run(EXAMPLES["play"] or "")
    assert asked == [("127.0.0.1", 8000)]
    assert len(served) == 1
    assert "trans-color, trans-occ" in shown
    served[0][0].close()
