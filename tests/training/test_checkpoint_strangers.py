"""Checkpoints with a right digest and a wrong content: a sentence, and the run that lies there is untouched."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factordiff.errors import CheckpointError
from factordiff.training.checkpoint import NAME
from factordiff.training.log import read_log
from tests.hostile import DEEP, JUNK, check_refused, header_of, put, with_header
from tests.training.runs import digest, trainer

Edit = Callable[[dict[str, Any], bytes], tuple[Any, bytes]]
MAY_BE = {
    "identity": ("object",), "identity.backbone": ("missing",), "identity.network": (),
    "identity.lr": (), "progress": (), "progress.seconds": ("missing", "zero", "half", "huge", "beyond 64 bits"),
    "progress.best_step": ("missing", "zero", "huge"), "progress.last_check": ("missing", "zero", "huge", "negative"),
    "started_from": ("missing", "null"), "best": ("missing",),
}  # fmt: skip


def in_run(path: str, value: Any) -> Edit:
    """Change what the checkpoint says about its run."""

    def edit(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
        run = json.loads(header["__metadata__"]["run"])
        return {**header, "__metadata__": {"run": json.dumps(put(run, path, value))}}, numbers

    return edit


def tensor(name: str, **values: Any) -> Edit:
    """Change what the header says of a tensor."""
    return lambda header, numbers: ({**header, name: {**header[name], **values}}, numbers)


def first_number(name: str, packed: bytes) -> Edit:
    """Change a tensor's first number."""

    def edit(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
        start = header[name]["data_offsets"][0]
        return header, numbers[:start] + packed + numbers[start + len(packed) :]

    return edit


def flattened(name: str) -> Edit:
    return lambda header, numbers: (
        {**header, name: {**header[name], "shape": [1, *header[name]["shape"]]}},
        numbers,
    )


def hostile() -> dict[str, Edit]:
    """Every hostile checkpoint by what is wrong with it."""
    found = {
        f"{path} is {name}": in_run(path, value)
        for path, allowed in MAY_BE.items()
        for name, value in JUNK.items()
        if name not in allowed
    }
    metadata: dict[str, Any] = {
        "none": {}, "empty": {"run": ""}, "no json": {"run": "run"}, "a list": {"run": "[]"}, "deep": {"run": DEEP},
        "empty object": {"run": "{}"}, "a number": {"run": 3}, "another best": {"run": '{"best": "../../best"}'},
    }  # fmt: skip
    for name, about in metadata.items():
        found[f"metadata is {name}"] = lambda header, numbers, about=about: (
            {**header, "__metadata__": about},
            numbers,
        )
    return found | {
        "no tensors": lambda header, numbers: ({"__metadata__": header["__metadata__"]}, b""),
        "no step": lambda header, numbers: ({("other" if n == "step" else n): o for n, o in header.items()}, numbers),
        "no weights": lambda header, numbers: (
            {("other" if n == "weights" else n): o for n, o in header.items()}, numbers
        ),
        "weights of another shape": flattened("weights"),
        "an average of another shape": flattened("ema"),
        "a step of two dimensions": flattened("step"),
        "whole numbers as weights": tensor("weights", dtype="I32"),
        "a step that is no number": tensor("step", dtype="F64"),
        "a negative step": first_number("step", struct.pack("<q", -5)),
        "a step of 2**62": first_number("step", struct.pack("<q", 2**62)),
        "weights that are not finite": first_number("weights", struct.pack("<f", math.nan)),
        "an average that is infinite": first_number("ema", struct.pack("<f", math.inf)),
        "a shape that contradicts": tensor("weights", shape=[2**60]),
        "a header that is a list": lambda header, numbers: ([], numbers),
        "an unknown dtype": tensor("weights", dtype="F1"),
    }  # fmt: skip


HOSTILE = hostile()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    trainer(folder, max_steps=2).run()
    for old in sorted(folder.glob("checkpoint-*"))[:-1]:
        old.unlink()
    return folder


def rewritten(folder: Path, edit: Edit | None = None, data: bytes | None = None) -> Path:
    """The folder's checkpoint with another content and the digest of that."""
    (path,) = folder.glob("checkpoint-*")
    if edit is not None:
        data = with_header(*edit(*header_of(path.read_bytes())))
    assert data is not None
    path.unlink()
    step = NAME.fullmatch(path.name).group(2)  # type: ignore[union-attr]
    made = folder / f"checkpoint-{step}-{hashlib.sha256(data).hexdigest()}.safetensors"
    made.write_bytes(data)
    return made


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 30


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_checkpoint_is_a_sentence(what: str, honest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(honest, folder)
    made = rewritten(folder, HOSTILE[what])
    before = made.read_bytes()
    assert str(folder) in check_refused(lambda: trainer(folder, resume=True, max_steps=4), len(before))
    assert made.read_bytes() == before


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 8, struct.pack("<Q", 2**62), b"\x80\x04."])
def test_a_hostile_file_is_a_sentence(data: bytes, honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest, tmp_path / "run")
    rewritten(tmp_path / "run", data=data)
    check_refused(lambda: trainer(tmp_path / "run", resume=True), 0)


def test_a_checkpoint_that_is_no_file_is_a_sentence(honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest, tmp_path / "run")
    (path,) = (tmp_path / "run").glob("checkpoint-*")
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "not a regular file" in check_refused(lambda: trainer(tmp_path / "run", resume=True), 0)


def test_the_checkpoint_itself_is_well(honest: Path, tmp_path: Path) -> None:
    """Rewritten without a change, it goes on to the same bits as a run that was never stopped."""
    shutil.copytree(honest, tmp_path / "run")
    rewritten(tmp_path / "run", lambda header, numbers: (header, numbers))
    continued, whole = trainer(tmp_path / "run", resume=True, max_steps=4), trainer(max_steps=4)
    continued.run()
    whole.run()
    assert digest(continued) == digest(whole)


LINES = [
    "[]", "1", "null", "{", "{}", '{"event": 1, "step": 1}', '{"event": "log", "step": "1", "loss": 1.0}',
    '{"event": "log", "step": 1}', '{"event": "check", "step": 1, "loss": "low"}', DEEP, "\0",
    '{"event": "check", "step": 1, "loss": 1.0, "exact": [1]}',
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_log_ends_where_it_is_no_log(line: str, honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest, tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    before = read_log(log)
    assert before
    log.write_text(log.read_text() + line + "\n" + log.read_text())
    assert read_log(log) == before
    assert trainer(tmp_path / "run", resume=True, max_steps=3).run()["step"] == 3


def test_published_logs_are_read_to_their_end() -> None:
    logs = sorted((Path(__file__).parents[2] / "docs" / "training").glob("*.jsonl"))
    assert logs
    for log in logs:
        assert len(read_log(log)) == len(log.read_text().splitlines()), log.name


def test_what_a_run_began_with_comes_back(tmp_path: Path) -> None:
    trainer(tmp_path / "first", max_steps=2).run()
    trainer(tmp_path / "second", max_steps=1, init_from=tmp_path / "first" / "weights").run()
    again = trainer(tmp_path / "second", resume=True, max_steps=2)
    assert again.started_from is not None
    assert again.started_from["about"]["objective"] == "full"
    again.run()  # and lets go of the folder
    with pytest.raises(CheckpointError, match="there are checkpoints of an earlier run here"):
        trainer(tmp_path / "second")
