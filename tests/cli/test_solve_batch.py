"""`factordiff solve` on many tasks: one bad item costs nothing but itself, and only what was asked for is written."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from factordiff.arc import task_files
from factordiff.arc.task import spell_task
from factordiff.cli import solve_display, submission
from factordiff.cli.app import app
from factordiff.errors import FileError, InvalidInput
from factordiff.team.team import Team
from tests.solving_experts import task, tiny_experts
from tests.task_files import write_task

run = CliRunner().invoke


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> str:
    return ",".join(tiny_experts(tmp_path_factory.mktemp("experts")))


def challenges(folder: Path, *ids: str) -> Path:
    file = folder / "challenges.json"
    file.write_text(json.dumps({one: spell_task(task(one)) for one in ids}))
    return file


def test_ids_of_any_kind_are_answered_and_kept(experts: str, tmp_path: Path) -> None:
    ids = ("first", "lone \ud800", "\x1b[2J\x1b]0;title\x07", "l" * 20_000, "last")
    options = {"--out": "s.json", "--picture": "p.png", "--animate": "a.gif", "--trace": "t.json"}
    words = [word for option, name in options.items() for word in (option, str(tmp_path / name))]
    result = run(app, ["solve", str(challenges(tmp_path, *ids)), "--experts", experts, *words])
    assert result.exit_code == 0, result.output
    assert tuple(json.loads((tmp_path / "s.json").read_text())) == ids
    assert "\x1b" not in result.output
    assert "\\x1b[2J" in result.stdout
    assert "\\ud800, test 0" in result.stdout
    for name in ("p.png", "a.gif"):
        with Image.open(tmp_path / name) as drawn:
            assert drawn.width < 2_000


def test_a_closed_folder_a_pipe_and_a_device_are_refused_and_the_others_answered(
    experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tasks"
    write_task(task("good"), folder / "good.json")
    (folder / "closed").mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    look = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name == "closed":  # root may look into anything
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(task_files.os, "scandir", scandir)
    result = run(app, ["solve", str(folder), "--experts", experts, "--out", str(tmp_path / "s.json")])
    assert result.exit_code == 3, result.output
    assert "closed: cannot be looked into (Permission denied)" in result.stderr
    assert "pipe.json: is a pipe, expected a regular file" in result.stderr
    assert "zero.json: is a device, expected a regular file" in result.stderr
    assert "1 answered" in result.stdout
    assert list(json.loads((tmp_path / "s.json").read_text())) == ["good"]


def test_what_was_answered_before_an_interruption_is_kept(
    experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = solve_display.solve

    def interrupted(one: Any, team: Team, **settings: Any) -> Any:
        if one.id == "three":
            raise KeyboardInterrupt
        return answer(one, team, **settings)

    monkeypatch.setattr(solve_display, "solve", interrupted)
    source, out = challenges(tmp_path, "one", "two", "three", "four"), tmp_path / "s.json"
    words = [
        "solve",
        str(source),
        "--experts",
        experts,
        "--out",
        str(out),
        "--picture",
        str(tmp_path / "p.png"),
    ]
    assert run(app, words).exit_code == 130
    assert list(json.loads(out.read_text())) == ["one", "two"]
    assert not (tmp_path / "p.png").exists()
    monkeypatch.undo()
    assert run(app, words).exit_code == 0
    assert list(json.loads(out.read_text())) == ["one", "two", "three", "four"]


def test_a_disk_that_is_full_for_a_while_costs_no_answer(
    experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[str]] = []
    plain = task_files.write_json

    def full_at_first(content: Any, file: Path) -> None:
        written.append(list(content))
        if len(written) == 2:
            raise FileError(f"{file}: cannot be written (No space left on device)")
        plain(content, file)

    monkeypatch.setattr(submission, "write_json", full_at_first)
    monkeypatch.setattr(submission, "SECONDS", 0.0)
    source, out = challenges(tmp_path, "one", "two", "three"), tmp_path / "s.json"
    result = run(app, ["solve", str(source), "--experts", experts, "--out", str(out)])
    assert result.exit_code == 0
    assert written == [["one"], ["one", "two"], ["one", "two", "three"]]
    assert result.stderr.count("No space left on device). Answering goes on") == 1
    assert list(json.loads(out.read_text())) == ["one", "two", "three"]


def test_the_submission_is_there_when_a_picture_cannot_be_written(
    experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise FileError("p.png: cannot be written (No space left on device)")

    monkeypatch.setattr(solve_display, "save_picture", full)
    source, out = challenges(tmp_path, "one"), tmp_path / "s.json"
    words = ["--experts", experts, "--out", str(out), "--picture", str(tmp_path / "p.png")]
    result = run(app, ["solve", str(source), *words])
    assert isinstance(result.exception, FileError)
    assert list(json.loads(out.read_text())) == ["one"]


def test_a_full_disk_behind_standard_output_costs_no_file(experts: str, tmp_path: Path) -> None:
    source, out = challenges(tmp_path, "one", "two"), tmp_path / "s.json"
    words = [
        sys.executable,
        "-m",
        "factordiff",
        "solve",
        str(source),
        "--experts",
        experts,
        "--out",
        str(out),
    ]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "standard output: cannot be written (No space left on device)" in ended.stderr
    assert list(json.loads(out.read_text())) == ["one", "two"]


def test_the_input_is_never_written_over(experts: str, tmp_path: Path) -> None:
    source = challenges(tmp_path, "one")
    before = source.read_bytes()
    (tmp_path / "alias.json").symlink_to(source)
    (tmp_path / "tasks").mkdir()
    for wrong, words in (
        ("--out: .* is also what is read", [str(source), "--out", str(source)]),
        ("--out: .* is also what is read", [str(tmp_path / "alias.json"), "--out", str(source)]),
        ("--trace: .* is also what is read", [str(source), "--trace", str(tmp_path / "alias.json")]),
        ("--out: .* is also what is read", [str(tmp_path), "--out", str(tmp_path / "tasks" / "new.json")]),
        ("--trace: .* is also the file of --out|--out: .* is also the file of --trace",
         [str(source), "--out", str(tmp_path / "s.json"), "--trace", str(tmp_path / "tasks" / ".." / "s.json")]),
    ):  # fmt: skip
        result = run(app, ["solve", *words, "--experts", experts])
        with pytest.raises(InvalidInput, match=wrong):
            raise result.exception or AssertionError(result.output)
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alias.json", "challenges.json", "tasks"]


def test_a_device_is_written_to_and_stays_one(experts: str, tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to("/dev/null")
    for out in ("/dev/null", str(tmp_path / "nowhere")):
        result = run(app, ["solve", str(challenges(tmp_path, "one")), "--experts", experts, "--out", out])
        assert result.exit_code == 0, result.output
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert (tmp_path / "nowhere").is_symlink()


def test_more_experts_than_letters(tmp_path: Path) -> None:
    names = tiny_experts(tmp_path, tuple(f"trans-{number}" for number in range(30)), sure=False)
    source = challenges(tmp_path, "one")
    result = run(
        app,
        [
            "solve",
            str(source),
            "--experts",
            ",".join(names),
            "--explain",
            "--attempts",
            "1",
            "--reveal",
            "confidence:3",
            "--picture",
            str(tmp_path / "p.png"),
        ],
    )
    assert result.exit_code == 0, result.output
    assert "D trans-29: " in result.stdout
