"""The log survives a cut-off line and a repeated stretch; the curves and TensorBoard read it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PIL import Image

from factordiff.errors import FileError
from factordiff.training.log import JsonLines, TensorBoard, draw_curves, read_log

EVENTS = [
    {"event": "start", "step": 0, "parameters": 7},
    {"event": "log", "step": 5, "loss": 2.0, "steps_per_second": 3.0},
    {"event": "check", "step": 5, "loss": 1.5, "pixel": 0.5, "exact": 0.0, "occupancy": 0.9},
    {"event": "log", "step": 10, "loss": 1.0, "steps_per_second": 3.0},
    {"event": "end", "step": 10, "loss": 1.0, "stopped_by": "the last step"},
]


def written(path: Path) -> Path:
    log = JsonLines(path, 0)
    for event in EVENTS:
        log(event)
    return path


def test_one_line_per_event(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl")
    assert [json.loads(line) for line in path.read_text().splitlines()] == EVENTS
    assert read_log(path) == EVENTS


def test_a_cut_off_line_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl")
    path.write_bytes(path.read_bytes()[:-20])
    assert read_log(path) == EVENTS[:-1]


def test_going_on_forgets_what_will_happen_again(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl")
    JsonLines(path, 5)({"event": "log", "step": 6, "loss": 1.9})
    assert read_log(path) == [*EVENTS[:3], {"event": "log", "step": 6, "loss": 1.9}]


def test_a_save_takes_the_log_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was logged before a checkpoint is on the disk when the checkpoint is, even if the machine disappears."""
    log = JsonLines(tmp_path / "log.jsonl", 0)
    lengths: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: lengths.append(os.fstat(descriptor).st_size))
    log(EVENTS[1])
    assert lengths == []
    log({"event": "save", "step": 5, "seconds": 0.1})
    assert lengths == [(tmp_path / "log.jsonl").stat().st_size]


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "log.jsonl", 0)
    (tmp_path / "log.jsonl").unlink()
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        log(EVENTS[0])


def test_the_picture(tmp_path: Path) -> None:
    pictures = []
    for events in (EVENTS, EVENTS[:1], []):
        (tmp_path / "log.jsonl").unlink(missing_ok=True)
        log = JsonLines(tmp_path / "log.jsonl", 0)
        for event in events:
            log(event)
        draw_curves(tmp_path / "log.jsonl", tmp_path / "curves.png")
        with Image.open(tmp_path / "curves.png") as picture:
            assert picture.size == (1100, 440)
            pictures.append(picture.convert("RGB").tobytes())
    assert pictures[1] == pictures[2]  # nothing to draw, and no error
    assert pictures[0] != pictures[1]


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = TensorBoard(tmp_path)
    for event in EVENTS:
        board(event)
    found = EventAccumulator(str(tmp_path)).Reload()
    assert [(s.step, s.value) for s in found.Scalars("log/loss")] == [(5, 2.0), (10, 1.0)]
    assert [(s.step, s.value) for s in found.Scalars("check/pixel")] == [(5, 0.5)]
