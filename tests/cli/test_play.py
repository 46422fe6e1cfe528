"""`factordiff play`: listens where it says, refuses in sentences, stops when asked."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.cli.play import experts_to_meet
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts import registry
from factordiff.networks.store import save_expert
from factordiff.web import story_list
from factordiff.web.story_list import STORIES
from tests.cli.test_app import ENVIRONMENT, ROOT, run
from tests.networks.small_networks import small
from tests.solving_experts import tiny_experts


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experts") / "tiny"
    return save_expert(small("trans-ir", layout=[10, 10]), folder, {"objective": "full"})


@pytest.fixture
def playing(expert: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "factordiff", "play", "--experts", str(expert), "--port", "0"]
    process = subprocess.Popen(
        command, env={**ENVIRONMENT, "COLUMNS": "200"}, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.wait()


def test_it_serves_on_this_machine_and_ends_on_request(playing: subprocess.Popen[str]) -> None:
    assert playing.stdout is not None
    line = playing.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
    assert found, line
    with urllib.request.urlopen(f"{found[0]}api/v1/about", timeout=30) as reply:
        assert [one["name"] for one in json.load(reply)["experts"]] == ["tiny"]
    playing.send_signal(signal.SIGINT)
    playing.wait(timeout=30)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(found[1])), timeout=2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--experts", "nowhere"), "'nowhere' is neither a folder nor a shipped expert"),
        (("--deadline", "nan"), "threads, queue, deadline: expected 1 to 10,000"),
        (("--threads", "0"), "threads, queue, deadline: expected 1 to 10,000"),
    ],
)
def test_refusals_are_sentences(arguments: tuple[str, ...], sentence: str) -> None:
    result = run("-m", "factordiff", "play", *arguments)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_taken_port_is_a_sentence(expert: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run("-m", "factordiff", "play", "--experts", str(expert), "--port", port)
    assert result.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in result.stderr


@pytest.fixture
def specialists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Untrained specialists under the shipped names, and one story on one task."""
    tiny_experts(tmp_path / "weights", ("trans-color", "trans-occ"))
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "weights")
    monkeypatch.setattr(story_list, "STORIES", (replace(STORIES[0], tasks=STORIES[0].tasks[:1]),))
    return tmp_path


def test_a_site_is_written_and_no_server_is_started(specialists: Path) -> None:
    site = specialists / "site"
    result = CliRunner().invoke(app, ["play", "--export", str(site)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    size = sum(path.stat().st_size for path in site.iterdir()) / 1e6
    assert f"1 story, {size:.1f} MB: open {site / 'index.html'}" in " ".join(result.output.split())
    assert "together: came out as 000, not 001" in result.output  # nobody has taught them anything
    assert (site / "stories.js").read_text().startswith("globalThis.FACTORDIFF_RECORDED = {")


def test_nothing_is_recorded_for_a_folder_that_is_full(specialists: Path) -> None:
    result = CliRunner().invoke(app, ["play", "--export", str(specialists)])
    assert result.exit_code == 1
    assert isinstance(result.exception, InvalidInput)
    assert "not empty; name a new folder" in str(result.exception)


def test_a_story_that_is_none_is_refused_with_those_there_are(specialists: Path) -> None:
    result = CliRunner().invoke(app, ["play", "--curate", "nothing"])
    assert isinstance(result.exception, Unavailable)
    assert "these experts tell together, got 'nothing'" in str(result.exception)


def test_experts_that_tell_no_story_are_told_so(expert: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["play", "--experts", str(expert), "--export", str(tmp_path / "site")])
    assert isinstance(result.exception, Unavailable)
    assert "these experts tell none of the stories" in str(result.exception)
    assert not (tmp_path / "site").exists()


def test_the_headline_pair_comes_first_and_variants_do_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SHIPPED", tmp_path)
    assert experts_to_meet() == []
    tiny_experts(tmp_path, ("mine",))
    assert experts_to_meet() == ["mine"]
    for pair in (("conv-full", "conv-full-early"), ("trans-occ", "trans-full")):
        tiny_experts(tmp_path, pair)
    assert experts_to_meet() == ["trans-full", "conv-full", "trans-occ"]
