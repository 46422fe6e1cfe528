"""The built wheel in a fresh environment, away from the repository, with the newest dependencies: `make test-wheel`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from factordiff.report.records import read_records
from tests.solving_experts import task
from tests.task_files import write_task

REPOSITORY = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.13")
# Nothing of this environment or of the repository may help.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
}


def run(words: list[str | Path], folder: Path) -> str:
    ended = subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{words}:\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


def interpreter(name: str) -> str | None:
    """Where a Python is; a version manager's stand-in for one that it keeps back is asked for it by its version."""
    found = shutil.which(name)
    if found is None:
        return None
    words = [found, "-c", "import sys; print(sys.executable)"]
    environment = {**ENVIRONMENT, "PYENV_VERSION": name.removeprefix("python")}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else None


@pytest.fixture(scope="module", params=PYTHONS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a fresh installation."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"{request.param} is not installed here")
    folder = tmp_path_factory.mktemp("wheel")
    run([python, "-m", "venv", folder / "venv"], folder)
    pip = [folder / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, REPOSITORY], folder)
    (wheel,) = folder.glob("factordiff-*.whl")
    run([*pip, "install", "--quiet", f"{wheel}[web]"], folder)
    return folder / "venv" / "bin" / "factordiff"


@pytest.mark.slow
def test_what_is_installed_works_away_from_the_repository(installed: Path, tmp_path: Path) -> None:
    version = run([installed, "--version"], tmp_path).strip()
    assert re.fullmatch(r"factordiff \d+\.\d+\.\d+", version)
    run([installed, "demo", "--out", "shown"], tmp_path)
    assert sorted(path.name for path in (tmp_path / "shown").iterdir()) == ["demo.gif", "demo.png"]
    write_task(task("one"), tmp_path / "one.json")
    run([installed, "solve", "one.json", "--out", "answers.json", "--picture", "answers.png"], tmp_path)
    assert list(json.loads((tmp_path / "answers.json").read_text())) == ["one"]
    run(
        [installed, "eval", "--experts", "trans-full,conv-full", "--limit", "2", "--out", "r.jsonl.gz"],
        tmp_path,
    )
    records = read_records(tmp_path / "r.jsonl.gz")
    assert len(records.records) == 2
    assert records.commits == [version]


@pytest.mark.slow
def test_the_playground_of_what_is_installed_answers(installed: Path, tmp_path: Path) -> None:
    words = [installed, "play", "--experts", "trans-full,conv-full", "--port", "0"]
    server = subprocess.Popen(words, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=60) as page:
            assert b"<html" in page.read()
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
