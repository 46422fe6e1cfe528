"""Checkpoints: whole or not there, every damage noticed, the previous one used."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from factordiff import files
from factordiff.errors import CheckpointError, FileError
from factordiff.streams import Purpose, integers
from factordiff.training.checkpoint import NAME, Checkpoint, latest, make_folder, read, save


def made(step: int, best: bool = False) -> Checkpoint:
    tensors = {"a": torch.arange(50) * step, "b": torch.full((3, 3), float(step)), "step": torch.tensor(step)}
    return Checkpoint(tensors, {"step": step, "text": "ä"}, torch.full((9,), step / 2.0) if best else None)


def same(found: Checkpoint, expected: Checkpoint) -> bool:
    return found.tensors.keys() == expected.tensors.keys() and all(
        torch.equal(tensor, expected.tensors[name]) for name, tensor in found.tensors.items()
    )


def test_round_trip_and_the_last_two_are_kept(tmp_path: Path) -> None:
    assert latest(tmp_path) is None
    for step in (1, 2, 30, 4000):
        save(tmp_path, step, made(step))
    assert sorted(int(NAME.fullmatch(p.name).group(2)) for p in tmp_path.iterdir()) == [30, 4000]  # type: ignore[union-attr]
    found = latest(tmp_path)
    assert found is not None
    assert same(found[0], made(4000))
    assert found[0].run["step"] == 4000
    assert found[1] == []


def test_the_best_weights_stay_as_long_as_a_checkpoint_needs_them(tmp_path: Path) -> None:
    for step, best in ((1, 1), (2, 1), (3, 3), (4, 3), (5, 3)):
        saved = Checkpoint(made(step).tensors, made(step).run, made(best, best=True).best)
        save(tmp_path, step, saved, best)
        found = latest(tmp_path)
        assert found is not None
        assert found[0].best is not None
        assert float(found[0].best[0]) == best / 2
        previous = sorted(tmp_path.glob("checkpoint-*"))[0]
        assert read(previous).best is not None
    assert len(list(tmp_path.glob("best-*"))) == 1
    for path in tmp_path.glob("best-*"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of the 2 checkpoints can be used"):
        latest(tmp_path)


def test_two_hundred_damages_are_noticed_and_the_previous_checkpoint_is_used(tmp_path: Path) -> None:
    """Bit flips, truncations and swapped files, anywhere in the newest file."""
    save(tmp_path, 10, made(10))
    save(tmp_path, 20, made(20))
    old, new = sorted(tmp_path.glob("checkpoint-*"))
    whole = new.read_bytes()
    for case in range(200):
        draw = lambda high, key, case=case: int(integers(high, 0, Purpose.BOOTSTRAP, case, key))  # noqa: E731
        kind = case % 3
        if kind == 0:
            place = draw(len(whole), 1)
            damaged = whole[:place] + bytes([whole[place] ^ (1 << draw(8, 2))]) + whole[place + 1 :]
        elif kind == 1:
            damaged = whole[: draw(len(whole), 3)]
        else:
            damaged = old.read_bytes() if case % 2 else whole + b"\0"
        new.write_bytes(damaged)
        found = latest(tmp_path)
        assert found is not None
        assert same(found[0], made(10))
        assert len(found[1]) == 1
        assert "damaged" in found[1][0]
    new.write_bytes(whole)
    found = latest(tmp_path)
    assert found is not None
    assert same(found[0], made(20))


def test_two_damaged_checkpoints_are_an_error_and_not_a_fresh_start(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step, made(step))
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="none of the 2 checkpoints can be used"):
        latest(tmp_path)


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1, made(1))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left on device.*what was there before is untouched"):
        save(tmp_path, 2, made(2))
    assert [path.name[:20] for path in tmp_path.iterdir()] == ["checkpoint-000000001"]
    found = latest(tmp_path)
    assert found is not None
    assert same(found[0], made(1))


def test_a_real_limit_on_file_size(tmp_path: Path) -> None:
    """The kernel itself refuses the bytes, half-way through the file."""
    save(tmp_path, 1, made(1))
    code = f"""
import resource, signal
from pathlib import Path
import torch
from factordiff.errors import FileError
from factordiff.training.checkpoint import Checkpoint, save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    save(Path({str(tmp_path)!r}), 2, Checkpoint({{"big": torch.zeros(100_000)}}, {{}}))
except FileError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "File too large" in run.stdout
    assert [path.name[:20] for path in tmp_path.iterdir()] == ["checkpoint-000000001"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "run", 1, made(1)) if (tmp_path / "run").mkdir() is None else None
    (tmp_path / "run").chmod(0o500)
    if os.access(tmp_path / "run", os.W_OK):  # root may write anywhere: let the system call say no

        def refuse(*arguments: object, **named: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(FileError, match="Permission denied"):
        make_folder(tmp_path / "run")
    monkeypatch.undo()
    (tmp_path / "run").chmod(0o700)
    assert latest(tmp_path / "run") is not None
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written into"):
        make_folder(tmp_path / "file" / "run")


def test_what_a_kill_left_is_swept(tmp_path: Path) -> None:
    save(tmp_path, 1, made(1))
    shutil.copy(next(tmp_path.iterdir()), tmp_path / ".writing-checkpoint-000000002")
    make_folder(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_foreign_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="expected a file named checkpoint-STEP-SHA256"):
        read(tmp_path / "model.safetensors")
