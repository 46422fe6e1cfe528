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
from pathlib import Path

import pytest

from factordiff.cli.play import experts_to_meet
from factordiff.experts import whereabouts
from factordiff.experts.store import save_expert
from tests.cli.test_app import ENVIRONMENT, ROOT, run
from tests.experts.networks import small
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


def test_the_headline_pair_comes_first_and_variants_do_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whereabouts, "SHIPPED", tmp_path)
    assert experts_to_meet() == []
    tiny_experts(tmp_path, ("mine",))
    assert experts_to_meet() == ["mine"]
    for pair in (("conv-full", "conv-full-early"), ("trans-occ", "trans-full")):
        tiny_experts(tmp_path, pair)
    assert experts_to_meet() == ["trans-full", "conv-full", "trans-occ"]
